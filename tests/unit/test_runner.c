/* SPDX-License-Identifier: MIT */
/* What becomes of one item's failure, and of many; how far steps are in flight; lanes. L19, L20, L23. */
#include "script_world.h"

#include <stdio.h>

static struct qret_cycle_report report;

/* The steps of partition 1 as they were sent. */
static struct {
	int32_t rows;
	char    version;
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
	static const char *const faults[] = { "ERROR 55P03 locked", "ERROR XX000 corrupt", "ERROR P0001 a trigger said no",
		                              "ERROR 22003 out of range" };

	for (size_t i = 0; i < COUNT_OF(faults); i++) {
		begin(10, 30, faults[i], 1000);
		ck_assert_int_eq(world_cycle(&report), QRET_PARTIAL);
		ck_assert_int_eq(step_count, 1);
		ck_assert_int_eq(report.items_failed, 1);
		ck_assert_int_eq(report.items_locked, i == 0);
		ck_assert_int_eq(report.partitions, 10);
		ck_assert_int_eq(world_left(), 30);
		ck_assert_contains(world.log, "event=item_failed phase=retention partition=00000000-0000-0000-0000-000000000001");
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
		int         rc;
	} rows[] = {
		{ "ERROR 25006 read-only", QRET_ERR_SQL },        { "ERROR 53200 out of memory", QRET_ERR_SQL },
		{ "ERROR 42501 permission denied", QRET_ERR_PRIVILEGE }, { "ERROR 42883 no function", QRET_ERR_SCHEMA },
		{ "ERROR QR003 streams", QRET_ERR_SCHEMA },       { "FATAL 57P01 shutting down", QRET_ERR_CONNECTION },
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
	static const char *const garbage[] = { "", "-", "- - - - - -", "'x 'y 'z 'a 'b 'c", "t", "9223372036854775807 1 1 f -1 f",
		                               "-5 -5 -5 f -5 f", "1/2/3" };
	static size_t at;

	if (strncmp(call->statement, "step", 4) != 0 && strcmp(call->statement, "metrics_purge") != 0)
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

/* ---- Bounds ------------------------------------------------------------------------------------ */

static int64_t flying[65], flying_most;
static bool limit_broken;
static int64_t limit;

/* Rows between send and answer, per connection; answers come in the order of sending, half a second later. */
static const char *count_flying(struct script_call *call)
{
	static struct {
		int64_t rows, until_us;
	} sent[65][256];

	if (strncmp(call->statement, "step_retention", 14) != 0)
		return NULL;
	flying[call->connection] = world_rows_of(call);
	for (int i = 0; i < 256; i++) {
		if (sent[call->connection][i].until_us > script_now_us())
			flying[call->connection] += sent[call->connection][i].rows;
	}
	for (int i = 0; i < 256; i++) {
		if (sent[call->connection][i].until_us <= script_now_us()) {
			sent[call->connection][i].rows = world_rows_of(call);
			sent[call->connection][i].until_us = script_now_us() + 500000;
			break;
		}
	}
	call->delay_ms = 500;
	limit_broken = limit_broken || flying[call->connection] > limit;
	flying_most = flying[call->connection] > flying_most ? flying[call->connection] : flying_most;
	return NULL;
}

/* Many small partitions, then a few large ones among them: the window opens and closes, the bound stays. */
START_TEST(runner_rows_in_flight_bounded)
{
	static const char *const sizes[] = { "10", "100", "1000" };

	for (size_t i = 0; i < COUNT_OF(sizes); i++) {
		world_begin(600, 1);
		world.before = count_flying;
		world_set("batch_size", sizes[i]);
		limit = i == 0 ? 10 : i == 1 ? 100 : 1000;
		limit_broken = false;
		flying_most = 0;
		for (int id = 0; id < 600; id++)
			world.segments[id] = id % 50 == 0 ? 3 * limit : id % 3;
		ck_assert_int_eq(world_cycle(&report), QRET_DONE);
		ck_assert_int_eq(world_left(), 0);
		ck_assert(!limit_broken);
		/* and the pipeline was used */
		ck_assert_int_lt(report.round_trips, report.steps);
		world_end();
	}
}
END_TEST

/* L22, B19: a budget ends the cycle between batches, and says that work is left. */
START_TEST(runner_budget)
{
	world_begin(100, 1000);
	world.before = count_flying;
	limit = 1000;
	world_set("cycle_budget_ms", "2000");
	ck_assert_int_eq(world_cycle(&report), QRET_BUDGET);
	ck_assert_int_gt(report.segments_deleted, 0);
	ck_assert_int_gt(world_left(), 0);
	ck_assert_int_le(report.elapsed_us, 3000000);
	ck_assert_int_eq(script_sent("gate_release"), 1);
	world_end();
}
END_TEST

/* A rate is kept over the cycle, by waiting between transactions. */
START_TEST(runner_rate)
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

/* ---- Lanes ------------------------------------------------------------------------------------- */

static const char *slow_steps(struct script_call *call)
{
	if (strncmp(call->statement, "step_retention", 14) == 0)
		call->delay_ms = 10;
	return NULL;
}

START_TEST(runner_lanes_share_the_work)
{
	world_begin(300, 5);
	world.before = slow_steps;
	world_set("parallelism", "4");
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	ck_assert_int_eq(report.segments_deleted, 1500);
	ck_assert_int_eq(report.partitions, 300);
	ck_assert_int_eq(script_opened(), 4);
	/* one gate, and the phases that belong to one lane were run by one */
	ck_assert_int_eq(script_sent("gate_take"), 1);
	ck_assert_int_eq(script_sent("metrics_purge"), 5);
	world_end();
}
END_TEST

START_TEST(runner_lanes_only_where_there_is_work)
{
	world_begin(1, 5);
	world_set("parallelism", "16");
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	ck_assert_int_eq(script_opened(), 1);
	world_end();
}
END_TEST

static int die_on, die_after;
static int64_t unanswered; /* rows whose deletion was never told */

static const char *lose_a_lane(struct script_call *call)
{
	static struct {
		int64_t rows, until_us;
	} sent[256];
	int64_t rows, *left;

	if (strncmp(call->statement, "step_retention", 14) != 0)
		return NULL;
	call->delay_ms = 10;
	if (call->connection != die_on || die_after < 0)
		return NULL;
	rows = world_rows_of(call);
	left = &world.segments[world_partition_of(call) - 1];
	sent[die_after] = (typeof(sent[0])){ rows < *left ? rows : *left, script_now_us() + 10000 };
	if (die_after-- > 0)
		return NULL;
	/* The last one died before it did anything; those before it are done, and their answers under way. */
	for (int i = 1; i < (int)COUNT_OF(sent); i++) {
		if (sent[i].until_us > script_now_us())
			unanswered += sent[i].rows;
		sent[i].until_us = 0;
	}
	call->flags = SCRIPT_DIE;
	return "";
}

/* A lost lane's items are taken over, and what it had counted stays. */
START_TEST(runner_lost_lane_is_replaced_by_the_others)
{
	for (int lane = 2; lane <= 3; lane++) {
		for (int after = 0; after < 12; after++) {
			world_begin(100, 20);
			world.before = lose_a_lane;
			die_on = lane;
			die_after = after;
			unanswered = 0;
			world_set("parallelism", "3");
			ck_assert_int_eq(world_cycle(&report), QRET_DONE);
			ck_assert_int_eq(world_left(), 0);
			/* B70: what was not told is not counted; the audit rows in the database are the truth */
			ck_assert_int_eq(report.segments_deleted, 2000 - unanswered);
			ck_assert_int_eq(world_logged("event=lane_lost"), 1);
			world_end();
		}
	}
}
END_TEST

static const char *lose_the_last(struct script_call *call)
{
	if (strncmp(call->statement, "step_retention", 14) != 0)
		return NULL;
	/* lane 1 has long been idle when the other one dies with an item in its hands */
	call->delay_ms = call->connection == 2 ? 1000 : 1;
	if (call->connection == 2)
		call->flags = SCRIPT_DIE;
	return call->flags ? "" : NULL;
}

START_TEST(runner_lost_lane_wakes_an_idle_one)
{
	world_begin(40, 3);
	world.before = lose_the_last;
	world_set("parallelism", "2");
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	ck_assert_int_eq(world_left(), 0);
	world_end();
}
END_TEST

static const char *hold_the_second(struct script_call *call)
{
	if (strncmp(call->statement, "step_retention", 14) != 0)
		return NULL;
	call->delay_ms = call->connection == 2 ? SCRIPT_NEVER : 1;
	return NULL;
}

/* The same, found by time: lane 2 hangs until its deadline, long after lane 1 has nothing left. */
START_TEST(runner_hung_lane_is_given_up)
{
	world_begin(40, 3);
	world.before = hold_the_second;
	world_set("parallelism", "2");
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	ck_assert_int_eq(world_logged("event=lane_lost"), 1);
	ck_assert_int_eq(script_sent("gate_release"), 1);
	/* what the server may have done on lane 2 was asked for again on lane 1 */
	ck_assert_int_eq(world_left(), 0);
	world_end();
}
END_TEST

START_TEST(runner_refused_lane_is_done_without)
{
	static const char *const behaviours[] = { NULL, "too many connections", "deaf" };

	world_begin(200, 5);
	world.before = slow_steps;
	script_connects(behaviours, COUNT_OF(behaviours));
	world_set("parallelism", "3");
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	ck_assert_int_eq(report.segments_deleted, 1000);
	ck_assert_int_ge(world_logged("event=lane_lost"), 1);
	world_end();
}
END_TEST

START_TEST(runner_lane_zero_lost_ends_the_cycle)
{
	world_begin(100, 20);
	world.before = lose_a_lane;
	die_on = 1;
	die_after = 3;
	unanswered = 0;
	world_set("parallelism", "3");
	ck_assert_int_eq(world_cycle(&report), QRET_ERR_CONNECTION);
	/* what the other lanes had in flight was finished and counted */
	ck_assert_int_eq(report.segments_deleted, world.deleted - unanswered);
	ck_assert_int_eq(script_sent("metrics_purge"), 0);
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	ck_assert_int_eq(world_left(), 0);
	world_end();
}
END_TEST

/* A lane that is still connecting when its phase is over must neither be waited for nor make the loop spin. */
START_TEST(runner_slow_lane_does_not_spin)
{
	static const char *const behaviours[] = { NULL, "deaf", "deaf" };
	int calls = 0, rc;

	world_begin(100, 1);
	world.before = slow_steps;
	script_connects(behaviours, COUNT_OF(behaviours));
	world_set("parallelism", "3");
	world_set("connect_timeout_ms", "5");
	ck_assert_int_eq(qret_cycle_begin(world.ctx), QRET_DONE);
	while ((rc = qret_cycle_process(world.ctx)) == QRET_MORE || rc == QRET_WAIT) {
		if (rc == QRET_WAIT)
			qret_wait(world.ctx);
		ck_assert_int_lt(++calls, 2000);
	}
	ck_assert_int_eq(rc, QRET_DONE);
	world_end();
}
END_TEST

/* ---- Steps by hand ----------------------------------------------------------------------------- */

static struct qret_step_result result;

static int step(int32_t phase, int64_t cutoff_us)
{
	struct qret_work_item item = { .size = sizeof(item), .all_cutoff_us = cutoff_us, .completed_cutoff_us = QRET_CUTOFF_OFF,
		                       .txns_cutoff_us = cutoff_us, .max_wait_cutoff_us = cutoff_us };

	item.partition_id[15] = 1;
	memset(&result, 0, sizeof(result));
	result.size = sizeof(result);
	result.done = 77;
	return qret_step(world.ctx, phase, phase <= 3 ? &item : NULL, &result);
}

START_TEST(step_one_batch)
{
	begin(1, 1500, NULL, 0);
	ck_assert_int_eq(step(QRET_PHASE_RETENTION, 5), QRET_DONE);
	ck_assert_int_eq(step_count, 1);
	ck_assert_int_eq(steps[0].rows, 1000);
	ck_assert_int_eq(result.done, 0);
	ck_assert_int_eq(result.rows_deleted, 1000);
	ck_assert_int_eq(result.messages_deleted, 10000);
	ck_assert_int_eq(result.watermark, 7);
	ck_assert_int_gt(result.elapsed_us, 0);
	ck_assert_int_eq(step(QRET_PHASE_RETENTION, 5), QRET_DONE);
	ck_assert_int_eq(result.done, 1);
	ck_assert_int_eq(result.rows_deleted, 500);
	ck_assert_int_eq(step(QRET_PHASE_METRICS_PURGE, 0), QRET_DONE);
	ck_assert_int_eq(result.done, 1);
	ck_assert_int_eq(result.watermark, -1);
	ck_assert_int_eq(script_sent("gate_take"), 0);
	world_end();
}
END_TEST

static const char *expect_nulls(struct script_call *call)
{
	if (strncmp(call->statement, "step", 4) != 0)
		return NULL;
	ck_assert_str_eq(call->parameters, strncmp(call->statement, "step_retention", 14) == 0 ? "#1 - - 1000 t" : "#1 - 1000 t");
	return "0 0 7 t 100 f";
}

/* A rule that is off travels as NULL, never as a time; the server says that nothing is deletable. */
START_TEST(step_rule_off_is_null)
{
	world_begin(1, 1500);
	world.before = expect_nulls;
	for (int32_t phase = 1; phase <= 3; phase++) {
		ck_assert_int_eq(step(phase, QRET_CUTOFF_OFF), QRET_DONE);
		ck_assert_int_eq(result.done, 1);
		ck_assert_int_eq(result.rows_deleted, 0);
		ck_assert_int_eq(result.watermark, 7);
	}
	world_end();
}
END_TEST

static const char *refuse_future(struct script_call *call)
{
	return strncmp(call->statement, "step", 4) == 0 ? "0 0 -1 f 10 t" : NULL;
}

START_TEST(step_future_cutoff_is_an_argument)
{
	world_begin(1, 10);
	world.before = refuse_future;
	ck_assert_int_eq(step(QRET_PHASE_RETENTION, INT64_MAX), QRET_ERR_ARGUMENT);
	ck_assert_contains(qret_error_message(world.ctx), "later than");
	ck_assert_int_eq(result.done, 77);
	world_end();
}
END_TEST

START_TEST(step_failures)
{
	static const struct {
		const char *fault;
		int         rc;
		int32_t     done;
	} rows[] = {
		{ "ERROR 55P03 locked", QRET_PARTIAL, 0 },       { "ERROR QR001 lost", QRET_PARTIAL, 0 },
		{ "ERROR 57014 canceled", QRET_ERR_TIMEOUT, 77 }, { "ERROR 40P01 deadlock", QRET_ERR_SQL, 77 },
		{ "ERROR 42501 denied", QRET_ERR_PRIVILEGE, 77 }, { "FATAL 57P01 gone", QRET_ERR_CONNECTION, 77 },
		{ "ERROR QR005 future", QRET_ERR_ARGUMENT, 77 },
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		begin(1, 10, rows[i].fault, 1);
		ck_assert_int_eq(step(QRET_PHASE_RETENTION, 5), rows[i].rc);
		ck_assert_int_eq(result.done, rows[i].done);
		ck_assert_int_eq(step_count, 1);
		ck_assert_str_ne(qret_error_message(world.ctx), "");
		ck_assert_int_eq(step(QRET_PHASE_RETENTION, 5), QRET_DONE);
		ck_assert_int_eq(result.done, 1);
		world_end();
	}
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
	                         runner_rows_in_flight_bounded,
	                         runner_budget,
	                         runner_rate,
	                         runner_lanes_share_the_work,
	                         runner_lanes_only_where_there_is_work,
	                         runner_lost_lane_is_replaced_by_the_others,
	                         runner_lost_lane_wakes_an_idle_one,
	                         runner_hung_lane_is_given_up,
	                         runner_refused_lane_is_done_without,
	                         runner_lane_zero_lost_ends_the_cycle,
	                         runner_slow_lane_does_not_spin,
	                         step_one_batch,
	                         step_rule_off_is_null,
	                         step_future_cutoff_is_an_argument,
	                         step_failures,
	                         NULL };

	return unit_run("runner", tests);
}
