/* SPDX-License-Identifier: MIT */
/* The n-th allocation of the library fails, for every n of everything it does. B71. */
#include "script_memory.h"
#include "script_world.h"

#include <stdio.h>

static struct qret_ctx *ctx;

/* Out of memory is said, or the call did without. */
static void assert_clean(int rc, const char *call, long n)
{
	REQUIRE(rc == QRET_DONE || rc == QRET_PARTIAL || rc == QRET_ERR_NOMEM ||
	                rc == QRET_ERR_CONNECTION,
	        "%s, allocation %ld: %d, %s", call, n, rc,
	        ctx == NULL ? "" : qret_error_message(ctx));
}

static void on_record(void *user_data, const struct qret_log_record *record)
{
	(void)user_data;
	REQUIRE(unit_is_utf8(record->text), "not UTF-8");
}

/* Everything once. What failed is left out, and the rest goes on. */
static void live(long n)
{
	struct qret_cycle_report report = { .size = sizeof(report) };
	struct qret_step_result result = { .size = sizeof(result) };
	struct qret_worklist *list = NULL;
	int32_t version;
	int rc;

	ctx = NULL;
	rc = qret_ctx_new(&ctx);
	REQUIRE(rc == QRET_DONE || rc == QRET_ERR_NOMEM, "ctx_new, allocation %ld: %d", n, rc);
	REQUIRE((rc == QRET_DONE) == (ctx != NULL), "ctx_new, allocation %ld", n);
	if (rc != QRET_DONE)
		return;
	qret_set_log(ctx, QRET_LOG_DEBUG, on_record, NULL, NULL);
	assert_clean(qret_set_option(ctx, "grant_role", "somebody"), "set_option", n);
	assert_clean(qret_set_option(ctx, "grant_role", "nobody"), "set_option", n);
	assert_clean(qret_set_option(ctx, "parallelism", "2"), "set_option", n);
	rc = qret_connect(ctx, "host=server");
	REQUIRE(rc == QRET_DONE || rc == QRET_ERR_NOMEM, "connect, allocation %ld: %d", n, rc);
	if (rc != QRET_DONE)
		REQUIRE(qret_connect(ctx, "host=server") == QRET_DONE,
		        "connect again, allocation %ld", n);
	rc = qret_worklist_build(ctx, &list);
	assert_clean(rc, "worklist_build", n);
	REQUIRE((rc == QRET_DONE) == (list != NULL), "worklist_build, allocation %ld", n);
	qret_worklist_free(list);
	assert_clean(qret_run_cycle(ctx, &report), "run_cycle", n);
	/* the statements are made anew */
	assert_clean(qret_set_option(ctx, "grant_role", NULL), "set_option", n);
	assert_clean(qret_run_cycle(ctx, &report), "run_cycle again", n);
	assert_clean(qret_step(ctx, QRET_PHASE_METRICS_PURGE, NULL, &result), "step", n);
	assert_clean(qret_schema_version(ctx, "log", &version), "schema_version", n);
	assert_clean(qret_schema_install(ctx, "log"), "schema_install", n);
}

/* Returns whether an allocation was due to fail. */
static bool live_with_failure(long n, bool onwards)
{
	bool failed;

	world_script(1100, 3);
	memory_begin(n, onwards);
	live(n);
	failed = memory_failed();
	qret_ctx_free(ctx);
	ck_assert_msg(memory_end() == 0, "allocation %ld: memory is held", n);
	script_end();
	return failed;
}

START_TEST(memory_each_allocation)
{
	long n = 1;

	while (live_with_failure(n, false))
		n += unit_stride(23);
	ck_assert_int_gt(n, 100);
}
END_TEST

/* After one failure the context is as good as before: the next cycle does all the work. */
START_TEST(memory_context_survives)
{
	bool failed = true;

	for (long n = 1; failed; n += unit_stride(7)) {
		struct qret_cycle_report report = { .size = sizeof(report) };

		world_begin(20, 3);
		world_set("parallelism", "2");
		memory_begin(n, false);
		assert_clean(qret_run_cycle(world.ctx, &report), "run_cycle", n);
		failed = memory_failed();
		memory_end();
		ck_assert_msg(qret_run_cycle(world.ctx, &report) == QRET_DONE, "allocation %ld: %s",
		              n, qret_error_message(world.ctx));
		ck_assert_int_eq(world_left(), 0);
		world_end();
	}
}
END_TEST

/* Nothing is wrong with the conninfo: a later call may succeed. */
START_TEST(memory_none_to_parse_the_conninfo)
{
	world_script(1, 1);
	REQUIRE(qret_ctx_new(&world.ctx) == QRET_DONE, "the world could not be set up");
	script_knobs.refuse_at = 1;
	ck_assert_int_eq(qret_connect(world.ctx, "host=server"), QRET_ERR_NOMEM);
	ck_assert_int_eq(qret_error_is_retryable(world.ctx), 1);
	ck_assert_int_eq(qret_connect(world.ctx, "host=server"), QRET_DONE);
	world_end();
}
END_TEST

START_TEST(memory_none_left_at_all)
{
	struct qret_cycle_report report = { .size = sizeof(report) };

	for (long n = 1; n < 150; n += 7 * unit_stride(3)) {
		world_begin(20, 3);
		memory_begin(n, true);
		assert_clean(qret_run_cycle(world.ctx, &report), "run_cycle", n);
		memory_end();
		ck_assert_int_eq(qret_run_cycle(world.ctx, &report), QRET_DONE);
		world_end();
	}
}
END_TEST

int main(void)
{
	const TTest *tests[] = { memory_each_allocation, memory_context_survives,
		                 memory_none_to_parse_the_conninfo, memory_none_left_at_all, NULL };

	return unit_run("fault_memory", tests);
}
