/* SPDX-License-Identifier: MIT */
/*
 * What a host's own loop is told: descriptors and a deadline that always lead on, however slow the host is to ask
 * for them, and that never make it spin.
 */
#include "script_world.h"

static struct qret_cycle_report report;

/* A cycle in a host that has something else to do for so long after every call; returns the outcome. */
static int cycle_of_a_slow_host(int64_t pause_ms)
{
	int rc;

	ck_assert_int_eq(qret_cycle_begin(world.ctx), QRET_DONE);
	while ((rc = qret_cycle_process(world.ctx)) == QRET_MORE || rc == QRET_WAIT) {
		script_pass_ms(pause_ms);
		if (rc == QRET_WAIT)
			ck_assert_int_eq(qret_wait(world.ctx), QRET_DONE);
	}
	return rc;
}

/* The moment to send again passes before the host asks for the deadline: it is told, all the same. */
START_TEST(wait_pace_that_is_over_when_asked)
{
	static const int64_t pauses[] = { 0, 1, 10, 999, 1000, 5000 };
	int64_t start_us;

	for (size_t i = 0; i < COUNT_OF(pauses); i++) {
		world_begin(3, 200);
		world_set_silent();
		start_us = qret_now_us();
		world_set("max_rows_per_second", "100");
		ck_assert_int_eq(cycle_of_a_slow_host(pauses[i]), QRET_DONE);
		ck_assert_int_lt(qret_now_us() - start_us, WORLD_SILENCE_US);
		ck_assert_int_eq(world_left(), 0);
		world_end();
	}
}
END_TEST

/* Until process has been called there is nothing to wait for, so a wait does not sleep. */
START_TEST(wait_before_the_first_process)
{
	world_begin(3, 200);
	world_set_silent();
	ck_assert_int_eq(qret_cycle_begin(world.ctx), QRET_DONE);
	ck_assert_int_le(qret_deadline_us(world.ctx), qret_now_us());
	for (int rc = QRET_MORE; rc != QRET_DONE;) {
		ck_assert_int_eq(qret_wait(world.ctx), QRET_DONE);
		rc = qret_cycle_process(world.ctx);
		ck_assert(rc == QRET_DONE || rc == QRET_MORE || rc == QRET_WAIT);
		if (rc == QRET_MORE)
			ck_assert_int_le(qret_deadline_us(world.ctx), qret_now_us());
	}
	ck_assert_int_eq(qret_deadline_us(world.ctx), INT64_MAX);
	ck_assert_int_eq(world_left(), 0);
	world_end();
}
END_TEST

static int last_steps;

static const char *hang_on_lane_2(struct script_call *call)
{
	if (strncmp(call->statement, "step_retention", 14) == 0)
		call->delay_ms = call->connection == 2 ? 8000 : 20;
	last_steps += call->connection == 2 && call->delay_ms == 8000;
	return NULL;
}

/* After a stop there is no sign of life any more that would be due: another lane's last step is slept through. */
START_TEST(wait_for_the_last_step_does_not_spin)
{
	bool stopped = false;
	int calls = 0, rc;

	world_begin(100, 5);
	world_set("idle_limit_ms", "3000");
	world_set("parallelism", "2");
	world.before = hang_on_lane_2;
	last_steps = 0;
	ck_assert_int_eq(qret_cycle_begin(world.ctx), QRET_DONE);
	while ((rc = qret_cycle_process(world.ctx)) == QRET_MORE || rc == QRET_WAIT) {
		if (last_steps > 0 && !stopped)
			qret_stop(world.ctx);
		stopped = last_steps > 0;
		if (rc == QRET_WAIT)
			qret_wait(world.ctx);
		ck_assert_int_lt(++calls, 1000);
	}
	ck_assert_int_eq(rc, QRET_STOPPED);
	world_end();
}
END_TEST

static int64_t left_meanwhile;

static const char *hang_for_a_while(struct script_call *call)
{
	if (strncmp(call->statement, "step_retention", 14) == 0)
		call->delay_ms = call->connection == 1 ? 20000 : 5;
	return NULL;
}

/* Lane 1 has its hands full: the time to open another comes without any answer. */
START_TEST(wait_for_the_time_to_open_a_lane)
{
	int64_t start_us;
	int rc;

	world_begin(100, 3);
	world_set_silent();
	world_set("parallelism", "2");
	world.before = hang_for_a_while;
	ck_assert_int_eq(qret_cycle_begin(world.ctx), QRET_DONE);
	start_us = qret_now_us();
	while ((rc = qret_cycle_process(world.ctx)) == QRET_MORE || rc == QRET_WAIT) {
		if (qret_now_us() < start_us + 20000000)
			left_meanwhile = world_left();
		if (rc == QRET_WAIT)
			qret_wait(world.ctx);
	}
	ck_assert_int_eq(rc, QRET_DONE);
	ck_assert_int_eq(left_meanwhile, 0);
	world_end();
}
END_TEST

static const char *slow_a_little(struct script_call *call)
{
	if (strncmp(call->statement, "step_retention", 14) == 0)
		call->delay_ms = 10;
	return NULL;
}

/* The budget ends while the rate lets nothing be sent: the cycle ends with it, not with the pause. */
START_TEST(wait_for_the_budget_within_a_pause)
{
	world_begin(400, 30);
	world_set_silent();
	world_set("parallelism", "8");
	world_set("max_rows_per_second", "2");
	world_set("cycle_budget_ms", "1500");
	world.before = slow_a_little;
	ck_assert_int_eq(world_cycle(&report), QRET_BUDGET);
	ck_assert_int_le(report.elapsed_us, 1600000);
	world_end();
}
END_TEST

int main(void)
{
	const TTest *tests[] = {
		wait_pace_that_is_over_when_asked,    wait_before_the_first_process,
		wait_for_the_last_step_does_not_spin, wait_for_the_time_to_open_a_lane,
		wait_for_the_budget_within_a_pause,   NULL
	};

	return unit_run("wait", tests);
}
