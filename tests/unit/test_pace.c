/* SPDX-License-Identifier: MIT */
/* A rate keeps its pauses between transactions, and nothing spins in them. L22. */
#include "script_world.h"

#include <stdio.h>

static struct qret_cycle_report report;

/* A rate is kept over the cycle, by waiting between transactions. */
START_TEST(pace_rate)
{
	world_begin(5, 200);
	world_set("max_rows_per_second", "100");
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	ck_assert_int_eq(report.segments_deleted, 1000);
	ck_assert_int_ge(report.elapsed_us, 8000000);
	ck_assert_int_le(report.elapsed_us, 11000000);
	world_end();
}
END_TEST

/* How often the cycle is called until its end. */
static int calls_of_a_cycle(int outcome)
{
	int calls = 0, rc;

	ck_assert_int_eq(qret_cycle_begin(world.ctx), QRET_DONE);
	while ((rc = qret_cycle_process(world.ctx)) == QRET_MORE || rc == QRET_WAIT) {
		if (rc == QRET_WAIT)
			qret_wait(world.ctx);
		ck_assert_int_lt(++calls, 1000);
	}
	ck_assert_int_eq(rc, outcome);
	report.size = sizeof(report);
	ck_assert_int_eq(qret_cycle_get_report(world.ctx, &report), QRET_DONE);
	return calls;
}

static int steps;

/*
 * Steps that find nothing open the window; then one takes more than was asked of it, which closes it
 * again while those behind it are still under way, slowly.
 */
static const char *greedy(struct script_call *call)
{
	if (strncmp(call->statement, "step_retention", 14) != 0)
		return NULL;
	steps++;
	if (steps < 12)
		return "0 0 7 t 100 f";
	if (steps == 12)
		return "1000 1000 7 f 100 f";
	call->delay_ms = 5000;
	return "0 0 7 t 100 f";
}

/* The budget ends in a pause, while a lane has no room for another step. */
START_TEST(pace_budget_that_ends_in_a_pause)
{
	world_begin(100, 10);
	world_set_silent();
	world.before = greedy;
	steps = 0;
	world_set("max_rows_per_second", "100");
	world_set("cycle_budget_ms", "1000");
	ck_assert_int_lt(calls_of_a_cycle(QRET_BUDGET), 60);
	/* What was under way came to its end. */
	ck_assert_int_ge(report.elapsed_us, 5000000);
	ck_assert_int_lt(report.elapsed_us, 6000000);
	world_end();
}
END_TEST

/* Where there is room, it is seen to at once. */
START_TEST(pace_budget_that_ends_in_a_pause_with_room)
{
	world_begin(5, 200);
	world_set_silent();
	world_set("max_rows_per_second", "100");
	world_set("cycle_budget_ms", "1500");
	ck_assert_int_lt(calls_of_a_cycle(QRET_BUDGET), 60);
	ck_assert_int_ge(report.elapsed_us, 1500000);
	ck_assert_int_lt(report.elapsed_us, 1600000);
	world_end();
}
END_TEST

int main(void)
{
	const TTest *tests[] = { pace_rate, pace_budget_that_ends_in_a_pause,
		                 pace_budget_that_ends_in_a_pause_with_room, NULL };

	return unit_run("pace", tests);
}
