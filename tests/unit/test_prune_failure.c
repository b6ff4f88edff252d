/* SPDX-License-Identifier: MIT */
/* A prune that fails, in part or whole, and one whose cycle ends before its turn. E6, E7. */
#include "script_outbox.h"

#include <stdio.h>
#include <stdlib.h>
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

static void fail_arm_with(const char *arm, const char *answer)
{
	outbox_answers = 0;
	failing_arm = arm;
	failing_answer = answer;
	world.before = lame_outbox;
}

static void begin_lame(const char *arm, const char *answer)
{
	outbox_begin();
	fail_arm_with(arm, answer);
}

/* One arm that always fails does not have every later round beside a busy host to itself. */
START_TEST(prune_beside_a_busy_host_and_a_failing_arm)
{
	static const char *const all[] = { "'succeeded", "'settled", "'own_window",
		                           "'default_window" };

	for (size_t failing = 0; failing < COUNT_OF(all); failing++) {
		begin_lame(all[failing], "ERROR 55P03 locked");
		outbox_busy();
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

/* An outbox whose first arm refuses so many steps from its front on, each for so long. */
static struct {
	const char *arm;     /* with its quote */
	int front;           /* steps until its end */
	int free_step;       /* one that deletes something; -1: none */
	const char *refusal; /* failed, failure and waits */
	int64_t step_ms;
	char asked[1024]; /* where its steps began, and a bar after each */
} refusing;

static const char *refusing_outbox(struct script_call *call)
{
	static char answer[256];
	const char *after = strstr(call->parameters, " 'c");
	int step = after == NULL ? 0 : atoi(after + 3);

	if (strcmp(call->statement, "event_prune_step") != 0 ||
	    strncmp(call->parameters, refusing.arm, strlen(refusing.arm)) != 0)
		return outbox_step(call);
	snprintf(refusing.asked + strlen(refusing.asked),
	         sizeof(refusing.asked) - strlen(refusing.asked), "%d|", step);
	script_pass_ms(refusing.step_ms);
	/* It only looks. */
	if (strcmp(strrchr(call->parameters, ' '), " 0") == 0) {
		snprintf(answer, sizeof(answer), "0 0 0 0 0 'c%d f 100 0 - 0", step);
		return answer;
	}
	if (step == refusing.front)
		return "0 0 0 0 0 - t 100 0 - 0";
	snprintf(answer, sizeof(answer), "%d 0 7 0 0 'c%d f 100 %s", step == refusing.free_step,
	         step + 1, refusing.refusal);
	return answer;
}

static void begin_refusing(int front, const char *refusal, int64_t step_ms)
{
	outbox_begin();
	refusing.arm = "'settled";
	refusing.front = front;
	refusing.free_step = -1;
	refusing.refusal = refusal;
	refusing.step_ms = step_ms;
	world.before = refusing_outbox;
}

static void ck_assert_run(int first, int steps, int outcome)
{
	char expected[1024] = "";

	refusing.asked[0] = outbox_arms[0] = '\0';
	ck_assert_int_eq(world_cycle(&report), outcome);
	for (int i = 0; i < steps; i++)
		snprintf(expected + strlen(expected), sizeof(expected) - strlen(expected), "%d|",
		         first + i);
	ck_assert_str_eq(refusing.asked, expected);
}

static const char refused[] = "64 'P0001_not_this_one 0", locked[] = "0 - 130";

/* Each run ends such an arm, and no other; together they come to its end, and begin again. */
START_TEST(prune_of_an_arm_that_refuses)
{
	static const char *const refusals[] = { refused, locked };

	for (size_t i = 0; i < COUNT_OF(refusals); i++) {
		begin_refusing(50, refusals[i], 1);
		refusing.free_step = 49;
		/* A context's first run comes to what is behind. */
		ck_assert_run(0, 51, i == 0 ? QRET_PARTIAL : QRET_DONE);
		ck_assert_int_eq(report.events_deleted, 1);
		refusing.free_step = -1;
		ck_assert_run(0, 20, QRET_PARTIAL);
		ck_assert_str_eq(qret_error_sqlstate(world.ctx), i == 0 ? "P0001" : "55P03");
		ck_assert_contains(outbox_arms, "'default_window");
		ck_assert_run(20, 20, QRET_PARTIAL);
		ck_assert_run(40, 11, i == 0 ? QRET_PARTIAL : QRET_DONE);
		ck_assert_run(0, 20, QRET_PARTIAL);
		/* One that lets something go is no vain one. */
		refusing.free_step = 35;
		ck_assert_run(20, 31, i == 0 ? QRET_PARTIAL : QRET_DONE);
		world_end();
	}
}
END_TEST

/* The first run has a minute for it. */
START_TEST(prune_first_run_that_is_refused)
{
	begin_refusing(100, refused, 2000);
	ck_assert_run(0, 30, QRET_PARTIAL);
	ck_assert_run(30, 20, QRET_PARTIAL);
	world_end();
	begin_refusing(100, refused, 10000);
	ck_assert_run(0, 20, QRET_PARTIAL);
	world_end();
}
END_TEST

/* A budget that does not suffice for what is refused is no reason never to come to what is behind. */
START_TEST(prune_budget_and_an_arm_that_refuses)
{
	begin_refusing(10, refused, 300);
	world_set("cycle_budget_ms", "1000");
	ck_assert_run(0, 4, QRET_BUDGET);
	ck_assert_run(4, 4, QRET_BUDGET);
	ck_assert_run(8, 3, QRET_PARTIAL);
	ck_assert_contains(outbox_arms, "'default_window");
	ck_assert_run(0, 4, QRET_BUDGET);
	world_end();
}
END_TEST

/* Where the limit leaves this arm a look alone, what it was to go on with is not forgotten. */
START_TEST(prune_limit_and_an_arm_that_refuses)
{
	begin_refusing(100, refused, 1);
	ck_assert_run(0, 101, QRET_PARTIAL);
	ck_assert_run(0, 20, QRET_PARTIAL);
	world_set("event_prune_limit", "5");
	outbox_answer = "5 5 0 0 0 - t 100 0 -";
	outbox_answers = 1;
	ck_assert_run(20, 1, QRET_BUDGET);
	world_set("event_prune_limit", "0");
	ck_assert_run(20, 20, QRET_PARTIAL);
	world_end();
}
END_TEST

/* One whose cursor stands still is over, and the next run is not to stand there as well. */
START_TEST(prune_refused_cursor_that_stands_still)
{
	outbox_begin();
	for (int run = 0; run < 3; run++) {
		outbox_arms[0] = '\0';
		outbox_answer = "0 0 0 0 0 'same f 100 64 'P0001_no";
		outbox_answers = 2;
		ck_assert_int_eq(world_cycle(&report), QRET_PARTIAL);
		ck_assert_contains(outbox_arms, "'succeeded @1700000000000000 7776000 5000 - 500|");
	}
	world_end();
}
END_TEST

/* A step that fails may fail for what it was asked: the next run begins at the start. */
START_TEST(prune_failure_forgets_where_to_go_on)
{
	begin_refusing(100, refused, 1);
	ck_assert_run(0, 101, QRET_PARTIAL);
	ck_assert_run(0, 20, QRET_PARTIAL);
	fail_arm_with("'settled", "ERROR 22023 a prune cannot go on after this");
	ck_assert_int_eq(world_cycle(&report), QRET_PARTIAL);
	world.before = refusing_outbox;
	ck_assert_run(0, 20, QRET_PARTIAL);
	world_end();
}
END_TEST

int main(void)
{
	const TTest *tests[] = { prune_failure_is_partial,
		                 prune_events_that_fail,
		                 prune_after_an_early_end,
		                 prune_beside_a_busy_host_and_a_failing_arm,
		                 prune_cursor_of_a_failed_arm,
		                 prune_step_by_hand_that_fails,
		                 prune_failure_waits,
		                 prune_of_an_arm_that_refuses,
		                 prune_first_run_that_is_refused,
		                 prune_budget_and_an_arm_that_refuses,
		                 prune_limit_and_an_arm_that_refuses,
		                 prune_refused_cursor_that_stands_still,
		                 prune_failure_forgets_where_to_go_on,
		                 NULL };

	return unit_run("prune_failure", tests);
}
