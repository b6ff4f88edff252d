/* SPDX-License-Identifier: MIT */
/* A prune that fails, in part or whole, and one whose cycle ends before its turn. E6, E7. */
#include "script_outbox.h"

#include <string.h>

static struct qret_cycle_report report;

/* A prune that fails is PARTIAL, is not tried again in this cycle, and leaves the log engine alone. */
START_TEST(prune_failure_is_partial)
{
	outbox_begin();
	world_set("engines", "log,event");
	outbox_answer = "ERROR 42P01 no such table";
	outbox_answers = 1000;
	ck_assert_int_eq(world_cycle(&report), QRET_PARTIAL);
	ck_assert_int_eq(script_sent("event_prune_step"), 1);
	ck_assert_int_eq(script_sent("metrics_purge"), 5);
	ck_assert_int_eq(world_logged("event=event_prune_error"), 1);
	ck_assert_str_eq(qret_error_sqlstate(world.ctx), "42P01");
	world_end();
}
END_TEST

/* Events that fail alone: told each time, PARTIAL, and the prune goes on. */
START_TEST(prune_events_that_fail)
{
	outbox_begin();
	outbox_answer = "5 5 0 0 0 - t 100 2 '23503_still_referenced";
	outbox_answers = 1;
	ck_assert_int_eq(world_cycle(&report), QRET_PARTIAL);
	ck_assert_int_eq(script_sent("event_prune_step"), 4);
	ck_assert_int_eq(report.items_failed, 2);
	ck_assert_int_eq(world_logged("event=event_prune_error"), 1);
	ck_assert_str_eq(qret_error_sqlstate(world.ctx), "23503");
	ck_assert_str_eq(qret_error_message(world.ctx), "still_referenced");
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
		return outbox_step(call);
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
	outbox_arms[0] = '\0';
	outbox_answer = "5 5 0 0 0 'c1 f 100 0 -";
	outbox_answers = 1000;
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
			ck_assert_contains(outbox_arms,
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
	const char *answer = outbox_step(call);

	if (strcmp(call->statement, "event_prune_step") == 0 &&
	    strncmp(call->parameters, failing_arm, strlen(failing_arm)) == 0 && answer == NULL)
		return failing_answer;
	return answer;
}

static void begin_lame(const char *arm, const char *answer)
{
	outbox_begin();
	outbox_answers = 0;
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
			outbox_arms[0] = '\0';
			world_cycle(&report);
			for (size_t i = 0; i < COUNT_OF(all); i++)
				ck_assert_contains(outbox_arms, all[i]);
		}
		world_end();
	}
}
END_TEST

/* Where an arm fails half way, the next does not begin at that one's cursor. */
START_TEST(prune_cursor_of_a_failed_arm)
{
	begin_lame("'succeeded", "ERROR 55P03 locked");
	outbox_answer = "3 9 0 0 0 'c1 f 100 0 -";
	outbox_answers = 1;
	ck_assert_int_eq(world_cycle(&report), QRET_PARTIAL);
	ck_assert_contains(outbox_arms, "'succeeded @1700000000000000 7776000 5000 'c1 500|");
	ck_assert_contains(outbox_arms, "'settled @1700000000000000 7776000 5000 - 500|");
	world_end();
}
END_TEST

/* By hand: events that failed alone are told, also where nothing else is due by any arm. */
START_TEST(prune_step_by_hand_that_fails)
{
	struct qret_step_result result = { .size = sizeof(result) };

	outbox_begin();
	outbox_answer = "0 0 0 0 0 - t 100 2 '23503_still_referenced";
	outbox_answers = 1;
	ck_assert_int_eq(qret_step(world.ctx, QRET_PHASE_EVENT_PRUNE, NULL, &result), QRET_PARTIAL);
	ck_assert_int_eq(result.done, 0);
	ck_assert_str_eq(qret_error_sqlstate(world.ctx), "23503");
	ck_assert_int_eq(qret_step(world.ctx, QRET_PHASE_EVENT_PRUNE, NULL, &result), QRET_DONE);
	ck_assert_int_eq(result.done, 1);
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

int main(void)
{
	const TTest *tests[] = {
		prune_failure_is_partial,     prune_events_that_fail,
		prune_after_an_early_end,     prune_beside_a_busy_host_and_a_failing_arm,
		prune_cursor_of_a_failed_arm, prune_step_by_hand_that_fails,
		prune_failure_waits,          NULL
	};

	return unit_run("prune_failure", tests);
}
