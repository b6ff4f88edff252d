/* SPDX-License-Identifier: MIT */
/* What becomes of one item's failure, and of many; how far steps are in flight; lanes. L19, L20, L23. */
#include "script_world.h"

#include <stdio.h>

static struct qret_cycle_report report;

/* The steps of partition 1 as they were sent. */
static struct {
	int32_t rows;
	char version;
} steps[128];
static int step_count;
static int failures_left;
static const char *failure;
static int failing_partition; /* 0: all */

/* Keeps what was sent to partition 1; fails the first failures_left steps, of one partition or of all. */
static const char *fail_steps(struct script_call *call)
{
	int id;

	if (strncmp(call->statement, "step_retention", 14) != 0)
		return NULL;
	id = world_partition_of(call);
	if (id == 1 && step_count < (int)COUNT_OF(steps)) {
		steps[step_count].rows = world_rows_of(call);
		steps[step_count++].version = call->statement[strlen(call->statement) - 1];
	}
	if (failures_left == 0 || (failing_partition != 0 && id != failing_partition))
		return NULL;
	failures_left--;
	return failure;
}

static void begin(int partitions, int64_t segments, const char *how, int times)
{
	world_begin(partitions, segments);
	world.before = fail_steps;
	step_count = 0;
	failures_left = times;
	failure = how;
	failing_partition = 1;
}

/* L23: again, then half, then once lock-first with 50 rows at the most, then as usual. */
START_TEST(runner_late_lock_ladder)
{
	begin(1, 300, "ERROR QR001 lost", 3);
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	ck_assert_int_eq(steps[0].rows, 100);
	ck_assert_int_eq(steps[1].rows, 100);
	ck_assert_int_eq(steps[2].rows, 50);
	ck_assert_int_eq(steps[2].version, '2');
	ck_assert_int_eq(steps[3].version, '1');
	ck_assert_int_le(steps[3].rows, 50);
	ck_assert_int_eq(steps[4].version, '2');
	ck_assert_int_eq(world_left(), 0);
	ck_assert_int_eq(report.items_failed, 0);
	world_end();
}
END_TEST

/* A seek below the batch is a loss of the same kind; more of them and the item waits for another cycle. */
START_TEST(runner_late_lock_given_up)
{
	begin(2, 300, "ERROR QR006 seek", 4);
	ck_assert_int_eq(world_cycle(&report), QRET_PARTIAL);
	ck_assert_int_eq(step_count, 4);
	ck_assert_int_eq(report.items_failed, 1);
	ck_assert_int_eq(report.items_locked, 1);
	ck_assert_str_eq(qret_error_sqlstate(world.ctx), "QR006");
	ck_assert_int_eq(world.segments[0], 300);
	ck_assert_int_eq(world.segments[1], 0);
	world_end();
}
END_TEST

/* The lock-first step never takes more than 50 rows, however large batches had grown. */
START_TEST(runner_lock_first_is_small)
{
	begin(1, 100000, "ERROR QR001 lost", 0);
	world.rows_us = 1;
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	ck_assert_int_eq(steps[step_count - 2].rows, 1000);
	world.segments[0] = 3000;
	step_count = 0;
	failures_left = 3;
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	ck_assert_int_eq(steps[3].version, '1');
	ck_assert_int_le(steps[3].rows, 50);
	world_end();
}
END_TEST

/* B04, B17: a statement timeout halves the batch at once, down to one row, and then gives the item up. */
START_TEST(runner_shrinks_on_timeout)
{
	begin(1, 300, "ERROR 57014 canceled", 3);
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	ck_assert_int_eq(steps[0].rows, 100);
	ck_assert_int_eq(steps[1].rows, 50);
	ck_assert_int_eq(steps[2].rows, 25);
	ck_assert_int_eq(steps[3].rows, 12);
	ck_assert_int_eq(world_left(), 0);
	world_end();
}
END_TEST

START_TEST(runner_shrinks_to_one)
{
	begin(2, 300, "ERROR 57014 canceled", 1000);
	ck_assert_int_eq(world_cycle(&report), QRET_PARTIAL);
	ck_assert_int_eq(step_count, 7); /* 100 50 25 12 6 3 1 */
	ck_assert_int_eq(steps[6].rows, 1);
	ck_assert_int_eq(report.items_failed, 1);
	ck_assert_int_eq(world.segments[1], 0);
	world_end();
}
END_TEST

/* Back to large batches once they are fast again. */
START_TEST(runner_recovers_its_size)
{
	begin(1, 20000, "ERROR 57014 canceled", 6);
	world.rows_us = 1;
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	ck_assert_int_eq(steps[6].rows, 1);
	ck_assert_int_eq(steps[step_count - 2].rows, 1000);
	world_end();
}
END_TEST

START_TEST(runner_follows_time)
{
	begin(1, 3000, NULL, 0);
	/* 100 us a row: 50 rows make 5 ms */
	world.rows_us = 100;
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	for (int i = 2; i < step_count; i++) {
		ck_assert_int_ge(steps[i].rows, 25);
		ck_assert_int_le(steps[i].rows, 80);
	}
	world_end();
}
END_TEST

/* A deadlock or a serialization failure is tried again a few times, at the same size. */
START_TEST(runner_retries)
{
	begin(1, 50, "ERROR 40P01 deadlock", 3);
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	ck_assert_int_eq(step_count, 4);
	ck_assert_int_eq(steps[3].rows, steps[0].rows);
	world_end();
	begin(2, 50, "ERROR 40001 serialization", 1000);
	ck_assert_int_eq(world_cycle(&report), QRET_PARTIAL);
	ck_assert_int_eq(step_count, 4);
	ck_assert_int_eq(world.segments[1], 0);
	world_end();
}
END_TEST

/* One item's fault is its own: the others go on, and the report and the log say which it was. */
START_TEST(runner_isolates_failures)
{
	static const char *const faults[] = { "ERROR 55P03 locked", "ERROR XX000 corrupt",
		                              "ERROR P0001 a trigger said no",
		                              "ERROR 22003 out of range" };

	for (size_t i = 0; i < COUNT_OF(faults); i++) {
		begin(10, 30, faults[i], 1000);
		ck_assert_int_eq(world_cycle(&report), QRET_PARTIAL);
		ck_assert_int_eq(step_count, 1);
		ck_assert_int_eq(report.items_failed, 1);
		ck_assert_int_eq(report.items_locked, i == 0);
		ck_assert_int_eq(report.partitions, 10);
		ck_assert_int_eq(world_left(), 30);
		ck_assert_contains(
			world.log,
			"event=item_failed phase=retention partition=00000000-0000-0000-0000-000000000001");
		ck_assert_int_eq(report.consecutive_failures, 0);
		world_end();
	}
}
END_TEST

/* What is wrong with the server, or with the installation, ends the cycle: no further batch begins. */
START_TEST(runner_ends_the_cycle)
{
	static const struct {
		const char *fault;
		int rc;
	} rows[] = {
		{ "ERROR 25006 read-only", QRET_ERR_SQL },
		{ "ERROR 53200 out of memory", QRET_ERR_SQL },
		{ "ERROR 42501 permission denied", QRET_ERR_PRIVILEGE },
		{ "ERROR 42883 no function", QRET_ERR_SCHEMA },
		{ "ERROR QR003 streams", QRET_ERR_SCHEMA },
		{ "FATAL 57P01 shutting down", QRET_ERR_CONNECTION },
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		begin(500, 1, rows[i].fault, 1000);
		failing_partition = 3;
		ck_assert_int_eq(world_cycle(&report), rows[i].rc);
		ck_assert_int_lt(report.steps, 60);
		ck_assert_int_eq(script_sent("metrics_purge"), 0);
		ck_assert_str_ne(qret_error_message(world.ctx), "");
		world_end();
	}
}
END_TEST

/* 20 in a row with one SQLSTATE are not the items' fault. */
START_TEST(runner_twenty_alike_end_the_cycle)
{
	begin(200, 1, "ERROR P0001 no", 1000);
	failing_partition = 0;
	ck_assert_int_eq(world_cycle(&report), QRET_ERR_SQL);
	ck_assert_str_eq(qret_error_sqlstate(world.ctx), "P0001");
	ck_assert_int_ge(report.items_failed, 20);
	ck_assert_int_lt(report.items_failed, 60);
	ck_assert_int_eq(script_sent("metrics_purge"), 0);
	world_end();
}
END_TEST

static const char *fail_most(struct script_call *call)
{
	if (strncmp(call->statement, "step_retention", 14) != 0)
		return NULL;
	return world_partition_of(call) % 20 == 0 ? NULL : "ERROR P0001 no";
}

/* A success in between starts the count anew. */
START_TEST(runner_success_breaks_the_row)
{
	world_begin(200, 1);
	world.before = fail_most;
	ck_assert_int_eq(world_cycle(&report), QRET_PARTIAL);
	ck_assert_int_eq(report.items_failed, 190);
	ck_assert_int_eq(report.segments_deleted, 10);
	world_end();
}
END_TEST

static const char *fail_alternating(struct script_call *call)
{
	if (strncmp(call->statement, "step_retention", 14) != 0)
		return NULL;
	return world_partition_of(call) % 2 ? "ERROR P0001 no" : "ERROR XX000 no";
}

START_TEST(runner_other_state_breaks_the_row)
{
	world_begin(100, 1);
	world.before = fail_alternating;
	ck_assert_int_eq(world_cycle(&report), QRET_PARTIAL);
	ck_assert_int_eq(report.items_failed, 100);
	world_end();
}
END_TEST

/* L19: what fails in cycle after cycle is left alone for a while, and is still told. */
START_TEST(runner_backs_off)
{
	begin(2, 30, "ERROR P0001 no", 1000);
	for (int i = 0; i < 12; i++) {
		ck_assert_int_eq(world_cycle(&report), QRET_PARTIAL);
		ck_assert_int_eq(report.items_failed, 1);
		script_pass_ms(5000);
	}
	ck_assert_int_ge(step_count, 4);
	ck_assert_int_le(step_count, 6);
	failures_left = 0;
	script_pass_ms(300000);
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	ck_assert_int_eq(world_left(), 0);
	world_end();
}
END_TEST

static const char *answer_nothing(struct script_call *call)
{
	return strncmp(call->statement, "step_retention", 14) == 0 ? "0 0 0 f 100 f" : NULL;
}

/* L20: deletes nothing and is not done: a broken contract, which must not spin. */
START_TEST(runner_stops_on_nothing)
{
	world_begin(3, 10);
	world.before = answer_nothing;
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	ck_assert_int_eq(report.steps, 3 + 5);
	world_end();
}
END_TEST

static const char *answer_garbage(struct script_call *call)
{
	static const char *const garbage[] = { "",
		                               "-",
		                               "- - - - - -",
		                               "'x 'y 'z 'a 'b 'c",
		                               "t",
		                               "9223372036854775807 1 1 f -1 f",
		                               "-5 -5 -5 f -5 f",
		                               "1/2/3" };
	static size_t at;

	if (strncmp(call->statement, "step", 4) != 0 &&
	    strcmp(call->statement, "metrics_purge") != 0)
		return NULL;
	return garbage[at++ % COUNT_OF(garbage)];
}

/* Any answer at all, from functions that are not ours: it ends, and nothing is read that is not there. */
START_TEST(runner_survives_garbage)
{
	for (int i = 0; i < 8; i++) {
		world_begin(1 + i, 10);
		world.other_phases = true;
		world.before = answer_garbage;
		world_set("partition_cleanup", "on");
		world_set("cycle_budget_ms", "1000");
		world_cycle(&report);
		world_end();
	}
}
END_TEST

/* L10: whatever happens to the metrics tables, the cycle is good; each is still tried. */
static const char *fail_metrics(struct script_call *call)
{
	return strcmp(call->statement, "metrics_purge") == 0 ? "ERROR 42P01 no such table" : NULL;
}

START_TEST(runner_metrics_failures_are_logged)
{
	world_begin(1, 10);
	world.before = fail_metrics;
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	ck_assert_int_eq(script_sent("metrics_purge"), 5);
	ck_assert_int_eq(report.items_failed, 0);
	ck_assert_int_eq(world_logged("event=metrics_purge_error"), 1);
	ck_assert_str_eq(qret_error_message(world.ctx), "");
	world_end();
}
END_TEST

int main(void)
{
	const TTest *tests[] = { runner_late_lock_ladder,
		                 runner_late_lock_given_up,
		                 runner_lock_first_is_small,
		                 runner_shrinks_on_timeout,
		                 runner_shrinks_to_one,
		                 runner_recovers_its_size,
		                 runner_follows_time,
		                 runner_retries,
		                 runner_isolates_failures,
		                 runner_ends_the_cycle,
		                 runner_twenty_alike_end_the_cycle,
		                 runner_success_breaks_the_row,
		                 runner_other_state_breaks_the_row,
		                 runner_backs_off,
		                 runner_stops_on_nothing,
		                 runner_survives_garbage,
		                 runner_metrics_failures_are_logged,
		                 NULL };

	return unit_run("runner", tests);
}
