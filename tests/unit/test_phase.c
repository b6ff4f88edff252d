/* SPDX-License-Identifier: MIT */
/* Phases with units of their own: arms, tables, cursors, sub-cadence, a busy host. E4, E6, E7, L9, L10, B06. */
#include "script_world.h"

#include <stdio.h>

static struct qret_cycle_report report;

static char arms[4096];
static const char *arm_answer;
static int answers_left;

static const char *outbox(struct script_call *call)
{
	if (strcmp(call->statement, "event_prune_step") != 0)
		return NULL;
	snprintf(arms + strlen(arms), sizeof(arms) - strlen(arms), "%s|", call->parameters);
	return answers_left-- > 0 ? arm_answer : NULL;
}

static void begin(void)
{
	world_begin(0, 0);
	world_set("engines", "event");
	world_set("event_prune_interval_ms", "0");
	world.before = outbox;
	arms[0] = '\0';
	answers_left = 0;
}

/* One after the other, at one clock, with the default window in seconds. */
START_TEST(phase_arms_in_order)
{
	begin();
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	ck_assert_str_eq(
		arms,
		"'succeeded @1700000000000000 7776000 5000 - 500|'settled @1700000000000000 7776000 5000 - 500|"
		"'own_window @1700000000000000 7776000 5000 - 500|'default_window @1700000000000000 7776000 5000 - 500|");
	ck_assert_int_eq(report.clock_us, WORLD_CLOCK_US);
	ck_assert_int_eq(script_sent("worklist_scan"), 0);
	world_end();
}
END_TEST

/* An arm is drained before the next, its cursor carried from step to step and dropped at its end. */
START_TEST(phase_cursor_is_carried)
{
	begin();
	arm_answer = "3 9 1 0 2 'c1 f 100 0 -";
	answers_left = 1;
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	ck_assert_contains(
		arms,
		"'succeeded @1700000000000000 7776000 5000 - 500|'succeeded @1700000000000000 7776000 5000 'c1 500|'settled");
	ck_assert_contains(arms, "'settled @1700000000000000 7776000 5000 - 500|");
	ck_assert_int_eq(report.events_deleted, 3);
	ck_assert_int_eq(report.events_succeeded, 3);
	ck_assert_int_eq(report.deliveries_deleted, 9);
	ck_assert_int_eq(report.items_locked, 1);
	ck_assert_int_eq(report.rows_poison, 2);
	world_end();
}
END_TEST

/* A step that deleted nothing but moved its cursor goes on; one whose cursor stands still is over. */
START_TEST(phase_cursor_that_stands_still)
{
	begin();
	arm_answer = "0 0 5 0 0 'same f 100 0 -";
	answers_left = 1000;
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	ck_assert_int_eq(script_sent("event_prune_step"), 8);
	world_end();
}
END_TEST

/* A prune that fails is PARTIAL, is not tried again in this cycle, and leaves the log engine alone. */
START_TEST(phase_prune_failure_is_partial)
{
	begin();
	world_set("engines", "log,event");
	arm_answer = "ERROR 42P01 no such table";
	answers_left = 1000;
	ck_assert_int_eq(world_cycle(&report), QRET_PARTIAL);
	ck_assert_int_eq(script_sent("event_prune_step"), 1);
	ck_assert_int_eq(script_sent("metrics_purge"), 5);
	ck_assert_int_eq(world_logged("event=event_prune_error"), 1);
	ck_assert_str_eq(qret_error_sqlstate(world.ctx), "42P01");
	world_end();
}
END_TEST

/* First one interval after the start, then once an interval; a failure waits as long as a success. */
START_TEST(phase_prune_sub_cadence)
{
	begin();
	world_set("event_prune_interval_ms", "60000");
	for (int i = 0; i < 12; i++) {
		ck_assert_int_eq(world_cycle(&report), QRET_DONE);
		script_pass_ms(5000);
	}
	ck_assert_int_eq(script_sent("event_prune_step"), 0);
	for (int i = 0; i < 12; i++) {
		world_cycle(&report);
		script_pass_ms(5000);
	}
	ck_assert_int_eq(script_sent("event_prune_step"), 4);
	world_end();
}
END_TEST

/* B06: a busy host defers it, but not for ever; overdue, it gets one step a cycle. */
START_TEST(phase_prune_beside_a_busy_host)
{
	int before = 0;

	begin();
	world_set("event_prune_interval_ms", "60000");
	world_set("event_prune_max_defer_ms", "600000");
	arm_answer = "5 5 0 0 0 - f 100 0 -";
	answers_left = 1000;
	ck_assert_int_eq(qret_set_busy(world.ctx, 1), QRET_DONE);
	for (int i = 0; i < 10; i++) {
		ck_assert_int_eq(world_cycle(&report), QRET_DONE);
		script_pass_ms(60000);
	}
	ck_assert_int_eq(script_sent("event_prune_step"), 0);
	script_pass_ms(60000);
	for (int i = 0; i < 5; i++) {
		ck_assert_int_eq(world_cycle(&report), QRET_DONE);
		ck_assert_int_eq(script_sent("event_prune_step"), ++before);
		script_pass_ms(5000);
	}
	ck_assert_int_eq(qret_set_busy(world.ctx, 0), QRET_DONE);
	answers_left = 3;
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	ck_assert_int_ge(script_sent("event_prune_step"), before + 4);
	world_end();
}
END_TEST

START_TEST(phase_prune_defers_for_ever_if_told)
{
	begin();
	world_set("event_prune_interval_ms", "1000");
	world_set("event_prune_max_defer_ms", "0");
	qret_set_busy(world.ctx, 1);
	for (int i = 0; i < 50; i++) {
		ck_assert_int_eq(world_cycle(&report), QRET_DONE);
		script_pass_ms(600000);
	}
	ck_assert_int_eq(script_sent("event_prune_step"), 0);
	world_end();
}
END_TEST

/* Events are what it bounds, not rows: the batches stay as they are. */
START_TEST(phase_prune_limit_is_a_budget)
{
	begin();
	world_set("event_prune_limit", "7");
	arm_answer = "5 5 0 0 0 - f 100 0 -";
	answers_left = 1000;
	ck_assert_int_eq(world_cycle(&report), QRET_BUDGET);
	ck_assert_int_eq(script_sent("event_prune_step"), 2);
	/* the second step may take no more events than are left */
	ck_assert_contains(arms, " 7776000 5000 - 7|");
	ck_assert_contains(arms, " 7776000 5000 - 2|");
	/* and the next cycle has its own seven */
	arms[0] = '\0';
	ck_assert_int_eq(world_cycle(&report), QRET_BUDGET);
	ck_assert_contains(arms, " 7776000 5000 - 7|");
	world_end();
}
END_TEST

/* As many as there were: the arms that are left are looked at, and the cycle is done. */
START_TEST(phase_prune_limit_that_was_enough)
{
	begin();
	world_set("event_prune_limit", "5");
	arm_answer = "5 5 0 0 0 - t 100 0 -";
	answers_left = 1;
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	ck_assert_int_eq(script_sent("event_prune_step"), 4);
	ck_assert_contains(arms, "'settled @1700000000000000 7776000 5000 - 0|");
	ck_assert_contains(arms, "'default_window @1700000000000000 7776000 5000 - 0|");
	/* One that finds something says so, and nothing more is asked. */
	answers_left = 2;
	arm_answer = "5 5 0 0 0 'c1 f 100 0 -";
	ck_assert_int_eq(world_cycle(&report), QRET_BUDGET);
	ck_assert_int_eq(script_sent("event_prune_step"), 5);
	world_end();
}
END_TEST

/* Events that fail alone: told each time, PARTIAL, and the prune goes on. */
START_TEST(phase_prune_events_that_fail)
{
	begin();
	arm_answer = "5 5 0 0 0 - t 100 2 '23503_still_referenced";
	answers_left = 1;
	ck_assert_int_eq(world_cycle(&report), QRET_PARTIAL);
	ck_assert_int_eq(script_sent("event_prune_step"), 4);
	ck_assert_int_eq(report.items_failed, 2);
	ck_assert_int_eq(world_logged("event=event_prune_error"), 1);
	ck_assert_str_eq(qret_error_sqlstate(world.ctx), "23503");
	ck_assert_str_eq(qret_error_message(world.ctx), "still_referenced");
	world_end();
}
END_TEST

/*
 * Where looks from the start take long, each arm begins where its last run left nothing; the first
 * run, and every tenth, at the start.
 */
START_TEST(phase_prune_hint)
{
	static const char start[] = "'settled @1700000000000000 7776000 5000 - 500|";
	static const char hint[] = "'settled @1700000000000000 7776000 5000 'low 500|";

	begin();
	answers_left = 1000;
	for (int run = 0; run < 40; run++) {
		/* The first run's time says nothing; in the end the entries are cleaned away. */
		bool from_start = run % 10 == 0 || run == 1 || run > 30;

		arms[0] = '\0';
		arm_answer = from_start && run < 30 ? "0 0 0 0 0 'low t 60000 0 -"
		                                    : "0 0 0 0 0 'low t 100 0 -";
		ck_assert_int_eq(world_cycle(&report), QRET_DONE);
		ck_assert_contains(arms, from_start ? start : hint);
	}
	world_end();
}
END_TEST

/* What ends every cycle in the log's steps, before the prune had its turn. */
static const struct early_end {
	const char *budget_ms, *answer;
	int64_t step_ms;
	int outcome;
	bool prunes;
} early_ends[] = {
	{ "1000", NULL, 300, QRET_BUDGET, true },
	{ "0", "ERROR 42501 permission denied", 0, QRET_ERR_PRIVILEGE, true },
	/* The lead is gone, or the server: then nobody prunes. */
	{ "0", "ERROR QR002 fence lost", 0, QRET_ERR_LEADER_LOST, false },
	{ "0", "ERROR 25006 read only", 0, QRET_ERR_SQL, false },
	{ "0", "ERROR 57P01 shutting down", 0, QRET_ERR_CONNECTION, false },
};
static const struct early_end *early_end;

static const char *log_and_outbox(struct script_call *call)
{
	if (strncmp(call->statement, "step_retention", 14) != 0)
		return outbox(call);
	script_pass_ms(early_end->step_ms);
	return early_end->answer;
}

static void begin_both(const struct early_end *end)
{
	early_end = end;
	world_begin(1, 1000000);
	world_set("engines", "log,event");
	world_set("event_prune_interval_ms", "60000");
	world_set("cycle_budget_ms", end->budget_ms);
	world.before = log_and_outbox;
	arms[0] = '\0';
	arm_answer = "5 5 0 0 0 'c1 f 100 0 -";
	answers_left = 1000;
}

/* Where no cycle comes to its end, the prune has one step in each once it is due. */
START_TEST(phase_prune_after_an_early_end)
{
	for (size_t i = 0; i < COUNT_OF(early_ends); i++) {
		int64_t pruned = 0;

		begin_both(&early_ends[i]);
		for (int cycle = 0; cycle < 20; cycle++) {
			ck_assert_int_eq(world_cycle(&report), early_end->outcome);
			ck_assert_int_le(report.events_deleted, 5);
			pruned += report.events_deleted;
			script_pass_ms(10000);
		}
		ck_assert_int_ge(script_sent("step_retention_v2"), 20);
		/* It is due from the seventh cycle on. */
		if (early_end->prunes) {
			ck_assert_int_ge(pruned, 12 * 5);
			ck_assert_contains(arms,
			                   "'succeeded @1700000000000000 7776000 5000 'c1 500|");
		} else {
			ck_assert_int_eq(script_sent("event_prune_step"), 0);
		}
		world_end();
	}
}
END_TEST

START_TEST(phase_prune_switched_off)
{
	begin();
	world_set("event_prune", "off");
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	ck_assert_int_eq(script_sent("event_prune_step"), 0);
	world_end();
}
END_TEST

/* ---- The clean-up and the metrics purge --------------------------------------------------------- */

static int cleanups;

static const char *clean_up(struct script_call *call)
{
	static const char *const answers[] = { "0 f 100 #5 3 0 -", "2 f 100 #9 0 2 #7",
		                               "0 f 100 #9 1 0 -", "1 t 100 - 0 0 -" };
	static const char *const after[] = { "-", "#5", "#9", "-" };

	if (strcmp(call->statement, "step_cleanup_v2") != 0)
		return NULL;
	ck_assert_int_lt(cleanups, 4);
	ck_assert_str_eq(strrchr(call->parameters, ' ') + 1, after[cleanups]);
	return answers[cleanups++];
}

/* L9, B49: spared candidates in front do not end the phase, as long as the cursor moves. */
START_TEST(phase_cleanup_follows_its_cursor)
{
	world_begin(0, 0);
	world_set("partition_cleanup", "on");
	world.before = clean_up;
	cleanups = 0;
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	ck_assert_int_eq(cleanups, 3);
	ck_assert_int_eq(report.partitions_deleted, 2);
	ck_assert_int_eq(report.items_locked, 4);
	ck_assert_contains(
		world.log,
		"event=orphan partition=00000000-0000-0000-0000-000000000007 partitions=2");
	world_end();
}
END_TEST

static int full_tables;

static const char *fill_tables(struct script_call *call)
{
	if (strcmp(call->statement, "metrics_purge") != 0)
		return NULL;
	return full_tables-- > 0 ? "1000 100" : "3 100";
}

/* L10: full batches are followed by another one of the same table. */
START_TEST(phase_metrics_purge_drains)
{
	world_begin(0, 0);
	world.before = fill_tables;
	full_tables = 3;
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	ck_assert_int_eq(script_sent("metrics_purge"), 8);
	ck_assert_int_eq(report.metrics_purged, 3015);
	world_end();
}
END_TEST

/* By hand, unit by unit: a step goes on where the last left off, and is done when all units are. */
START_TEST(phase_step_by_hand_goes_through_units)
{
	struct qret_step_result result = { .size = sizeof(result) };

	world_begin(0, 0);
	world.before = fill_tables;
	full_tables = 2;
	ck_assert_int_eq(qret_step(world.ctx, QRET_PHASE_METRICS_PURGE, NULL, &result), QRET_DONE);
	ck_assert_int_eq(result.rows_deleted, 1000);
	ck_assert_int_eq(result.done, 0);
	for (int i = 0; i < 5; i++) {
		ck_assert_int_eq(qret_step(world.ctx, QRET_PHASE_METRICS_PURGE, NULL, &result),
		                 QRET_DONE);
		ck_assert_int_eq(result.done, 0);
	}
	ck_assert_int_eq(qret_step(world.ctx, QRET_PHASE_METRICS_PURGE, NULL, &result), QRET_DONE);
	ck_assert_int_eq(result.done, 1);
	world_end();
}
END_TEST

int main(void)
{
	const TTest *tests[] = { phase_arms_in_order,
		                 phase_cursor_is_carried,
		                 phase_cursor_that_stands_still,
		                 phase_prune_failure_is_partial,
		                 phase_prune_sub_cadence,
		                 phase_prune_beside_a_busy_host,
		                 phase_prune_defers_for_ever_if_told,
		                 phase_prune_limit_is_a_budget,
		                 phase_prune_limit_that_was_enough,
		                 phase_prune_events_that_fail,
		                 phase_prune_hint,
		                 phase_prune_after_an_early_end,
		                 phase_prune_switched_off,
		                 phase_cleanup_follows_its_cursor,
		                 phase_metrics_purge_drains,
		                 phase_step_by_hand_goes_through_units,
		                 NULL };

	return unit_run("phase", tests);
}
