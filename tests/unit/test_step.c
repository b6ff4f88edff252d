/* SPDX-License-Identifier: MIT */
/* Steps by hand: one batch each, and what a failure of it is called. */
#include "script_world.h"

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

static struct qret_step_result result;

static int step(int32_t phase, int64_t cutoff_us)
{
	struct qret_work_item item = { .size = sizeof(item),
		                       .all_cutoff_us = cutoff_us,
		                       .completed_cutoff_us = QRET_CUTOFF_OFF,
		                       .txns_cutoff_us = cutoff_us,
		                       .max_wait_cutoff_us = cutoff_us };

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
	ck_assert_str_eq(call->parameters, strncmp(call->statement, "step_retention", 14) == 0
	                                           ? "#1 - - 1000 t"
	                                           : "#1 - 1000 t");
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
		int rc;
		int32_t done;
	} rows[] = {
		{ "ERROR 55P03 locked", QRET_PARTIAL, 0 },
		{ "ERROR QR001 lost", QRET_PARTIAL, 0 },
		{ "ERROR 57014 canceled", QRET_ERR_TIMEOUT, 77 },
		{ "ERROR 40P01 deadlock", QRET_ERR_SQL, 77 },
		{ "ERROR 42501 denied", QRET_ERR_PRIVILEGE, 77 },
		{ "FATAL 57P01 gone", QRET_ERR_CONNECTION, 77 },
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
	const TTest *tests[] = { step_one_batch, step_rule_off_is_null,
		                 step_future_cutoff_is_an_argument, step_failures, NULL };

	return unit_run("step", tests);
}
