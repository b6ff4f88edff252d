/* SPDX-License-Identifier: MIT */
/* The prune of an outbox in a cycle: its arms, cursors, hints, sub-cadence, a busy host. E4, E6, E7, B06. */
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
START_TEST(prune_arms_in_order)
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
START_TEST(prune_cursor_is_carried)
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
START_TEST(prune_cursor_that_stands_still)
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
START_TEST(prune_failure_is_partial)
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
START_TEST(prune_sub_cadence)
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
START_TEST(prune_beside_a_busy_host)
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

START_TEST(prune_defers_for_ever_if_told)
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
START_TEST(prune_limit_is_a_budget)
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
START_TEST(prune_limit_that_was_enough)
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
START_TEST(prune_events_that_fail)
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
START_TEST(prune_hint)
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
START_TEST(prune_after_an_early_end)
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

static const char *failing_arm, *failing_answer;

/* An outbox of which one arm fails. */
static const char *lame_outbox(struct script_call *call)
{
	const char *answer = outbox(call);

	if (strcmp(call->statement, "event_prune_step") == 0 &&
	    strncmp(call->parameters, failing_arm, strlen(failing_arm)) == 0 && answer == NULL)
		return failing_answer;
	return answer;
}

static void begin_lame(const char *arm, const char *answer)
{
	begin();
	answers_left = 0;
	failing_arm = arm;
	failing_answer = answer;
	world.before = lame_outbox;
}

/* One arm that always fails does not have every later round beside a busy host to itself. */
START_TEST(prune_beside_a_busy_host_and_a_failing_arm)
{
	static const char *const all[] = { "'succeeded", "'settled", "'own_window",
		                           "'default_window" };

	for (size_t failing = 0; failing < COUNT_OF(all); failing++) {
		begin_lame(all[failing], "ERROR 55P03 locked");
		world_set("event_prune_interval_ms", "60000");
		world_set("event_prune_max_defer_ms", "600000");
		qret_set_busy(world.ctx, 1);
		world_cycle(&report);
		for (int round = 0; round < 4; round++) {
			script_pass_ms(700000);
			arms[0] = '\0';
			world_cycle(&report);
			for (size_t i = 0; i < COUNT_OF(all); i++)
				ck_assert_contains(arms, all[i]);
		}
		world_end();
	}
}
END_TEST

/* A whole prune leaves nothing for a later round to go on with: that begins with the first arm. */
START_TEST(prune_round_after_a_whole_one)
{
	begin();
	world_set("event_prune_interval_ms", "60000");
	world_set("event_prune_max_defer_ms", "600000");
	qret_set_busy(world.ctx, 1);
	world_cycle(&report);
	script_pass_ms(700000);
	arm_answer = "5 5 0 0 0 - t 100 0 -";
	answers_left = 1;
	world_cycle(&report);
	ck_assert_int_eq(report.events_succeeded, 5);
	qret_set_busy(world.ctx, 0);
	world_cycle(&report);
	ck_assert_contains(arms, "'default_window");
	qret_set_busy(world.ctx, 1);
	script_pass_ms(700000);
	arms[0] = '\0';
	world_cycle(&report);
	ck_assert_contains(arms, "'succeeded");
	world_end();
}
END_TEST

/* Where an arm fails half way, the next does not begin at that one's cursor. */
START_TEST(prune_cursor_of_a_failed_arm)
{
	begin_lame("'succeeded", "ERROR 55P03 locked");
	arm_answer = "3 9 0 0 0 'c1 f 100 0 -";
	answers_left = 1;
	ck_assert_int_eq(world_cycle(&report), QRET_PARTIAL);
	ck_assert_contains(arms, "'succeeded @1700000000000000 7776000 5000 'c1 500|");
	ck_assert_contains(arms, "'settled @1700000000000000 7776000 5000 - 500|");
	world_end();
}
END_TEST

/* By hand: events that failed alone are told, also where nothing else is due by any arm. */
START_TEST(prune_step_by_hand_that_fails)
{
	struct qret_step_result result = { .size = sizeof(result) };

	begin();
	arm_answer = "0 0 0 0 0 - t 100 2 '23503_still_referenced";
	answers_left = 1;
	ck_assert_int_eq(qret_step(world.ctx, QRET_PHASE_EVENT_PRUNE, NULL, &result), QRET_PARTIAL);
	ck_assert_int_eq(result.done, 0);
	ck_assert_str_eq(qret_error_sqlstate(world.ctx), "23503");
	ck_assert_int_eq(qret_step(world.ctx, QRET_PHASE_EVENT_PRUNE, NULL, &result), QRET_DONE);
	ck_assert_int_eq(result.done, 1);
	world_end();
}
END_TEST

static const char *stopping_outbox(struct script_call *call)
{
	if (strcmp(call->statement, "event_prune_step") == 0)
		qret_stop(world.ctx);
	return outbox(call);
}

/* A stop waits for the batch that is at work, and for no other. */
START_TEST(prune_stops_between_batches)
{
	begin();
	world.before = stopping_outbox;
	arm_answer = "5 5 0 0 0 'c1 f 100 0 -";
	answers_left = 1000;
	ck_assert_int_eq(world_cycle(&report), QRET_STOPPED);
	ck_assert_int_eq(script_sent("event_prune_step"), 1);
	ck_assert_int_eq(report.events_deleted, 5);
	world_end();
}
END_TEST

/* What failed is not tried again before the next interval. */
START_TEST(prune_failure_waits)
{
	static const char *const failures[] = { "ERROR 42P01 no such table", "ERROR 55P03 locked" };

	for (size_t i = 0; i < COUNT_OF(failures); i++) {
		begin_lame("'succeeded", failures[i]);
		world_set("event_prune_interval_ms", "60000");
		world_cycle(&report);
		for (int round = 0; round < 3; round++) {
			int before;

			script_pass_ms(60000);
			ck_assert_int_eq(world_cycle(&report), QRET_PARTIAL);
			before = script_sent("event_prune_step");
			for (int k = 0; k < 5; k++) {
				script_pass_ms(10000);
				ck_assert_int_eq(world_cycle(&report), QRET_DONE);
			}
			ck_assert_int_eq(script_sent("event_prune_step"), before);
			script_pass_ms(1);
		}
		world_end();
	}
}
END_TEST

START_TEST(prune_switched_off)
{
	begin();
	world_set("event_prune", "off");
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	ck_assert_int_eq(script_sent("event_prune_step"), 0);
	world_end();
}
END_TEST

int main(void)
{
	const TTest *tests[] = { prune_arms_in_order,
		                 prune_cursor_is_carried,
		                 prune_cursor_that_stands_still,
		                 prune_failure_is_partial,
		                 prune_sub_cadence,
		                 prune_beside_a_busy_host,
		                 prune_defers_for_ever_if_told,
		                 prune_limit_is_a_budget,
		                 prune_limit_that_was_enough,
		                 prune_events_that_fail,
		                 prune_hint,
		                 prune_after_an_early_end,
		                 prune_beside_a_busy_host_and_a_failing_arm,
		                 prune_round_after_a_whole_one,
		                 prune_cursor_of_a_failed_arm,
		                 prune_step_by_hand_that_fails,
		                 prune_stops_between_batches,
		                 prune_failure_waits,
		                 prune_switched_off,
		                 NULL };

	return unit_run("prune", tests);
}
