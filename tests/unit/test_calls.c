/* SPDX-License-Identifier: MIT */
/* The calls that reach a server, before they do: order, arguments, struct sizes, a stop. */
#include "unit.h"

#include "context.h"

static struct qret_ctx *ctx;

static void begin(void)
{
	ctx = NULL;
	ck_assert_int_eq(qret_ctx_new(&ctx), QRET_DONE);
}

START_TEST(calls_calls_out_of_order)
{
	struct qret_cycle_report report = { .size = sizeof(report) };
	struct qret_step_result result = { .size = sizeof(result) };
	struct qret_worklist *list = NULL;
	int32_t version = 77, tainted = 77;

	begin();
	ck_assert_int_eq(qret_cycle_begin(ctx), QRET_ERR_STATE);
	ck_assert_contains(qret_error_hint(ctx), "qret_connect");
	ck_assert_int_eq(qret_cycle_process(ctx), QRET_ERR_STATE);
	ck_assert_int_eq(qret_cycle_get_report(ctx, &report), QRET_ERR_STATE);
	ck_assert_int_eq(qret_worklist_build(ctx, &list), QRET_ERR_STATE);
	ck_assert_ptr_null(list);
	ck_assert_int_eq(qret_gate_take(ctx), QRET_ERR_STATE);
	ck_assert_int_eq(qret_gate_release(ctx), QRET_ERR_STATE);
	ck_assert_int_eq(qret_step(ctx, QRET_PHASE_METRICS_PURGE, NULL, &result), QRET_ERR_STATE);
	ck_assert_int_eq(qret_schema_install(ctx, "log"), QRET_ERR_STATE);
	ck_assert_int_eq(qret_schema_version(ctx, "log", &version), QRET_ERR_STATE);
	ck_assert_int_eq(version, 77);
	ck_assert_int_eq(qret_detach(ctx, &tainted), QRET_ERR_STATE);
	ck_assert_int_eq(tainted, 77);
	ck_assert_int_eq(qret_attach(ctx, NULL), QRET_ERR_ARGUMENT);
	/* The report of a cycle that could not begin still says so. */
	ck_assert_int_eq(qret_run_cycle(ctx, &report), QRET_ERR_STATE);
	ck_assert_int_eq(report.outcome, QRET_ERR_STATE);
	qret_ctx_free(ctx);
}
END_TEST

START_TEST(calls_second_begin)
{
	begin();
	ck_assert_int_eq(qret_connect(ctx, "host=/nonexistent"), QRET_DONE);
	ck_assert_int_eq(qret_cycle_begin(ctx), QRET_DONE);
	ck_assert_int_eq(qret_cycle_begin(ctx), QRET_ERR_STATE);
	ck_assert_int_eq(qret_run_cycle(ctx, NULL), QRET_ERR_STATE);
	ck_assert_int_eq(qret_set_option(ctx, "gate", "none"), QRET_ERR_STATE);
	ck_assert_int_eq(qret_load_env(ctx), QRET_ERR_STATE);
	ck_assert_int_eq(qret_connect(ctx, ""), QRET_ERR_STATE);
	ck_assert_int_eq(qret_gate_take(ctx), QRET_ERR_STATE);
	ck_assert_contains(qret_error_hint(ctx), "qret_cycle_process");
	qret_ctx_free(ctx);
}
END_TEST

static const struct qret_work_item good_item = { .size = sizeof(good_item) };

START_TEST(calls_step_arguments)
{
	struct {
		struct qret_work_item item;
		uint8_t tail[8];
	} larger = { { .size = sizeof(larger) }, { 0 } };
	struct qret_step_result result = { .size = sizeof(result), .done = 77 };
	struct qret_work_item item;

	begin();
	ck_assert_int_eq(qret_connect(ctx, "host=/nonexistent"), QRET_DONE);
	ck_assert_int_eq(qret_step(ctx, 0, NULL, &result), QRET_ERR_ARGUMENT);
	ck_assert_int_eq(qret_step(ctx, 7, NULL, &result), QRET_ERR_ARGUMENT);
	ck_assert_int_eq(qret_step(ctx, -1, &good_item, &result), QRET_ERR_ARGUMENT);
	ck_assert_int_eq(qret_step(ctx, INT32_MAX, NULL, &result), QRET_ERR_ARGUMENT);
	for (int32_t phase = 1; phase <= 6; phase++)
		ck_assert_int_eq(qret_step(ctx, phase, phase <= 3 ? NULL : &good_item, &result),
		                 QRET_ERR_ARGUMENT);
	for (uint32_t size = 0; size < sizeof(item); size += 8) {
		item = good_item;
		item.size = size;
		ck_assert_int_eq(qret_step(ctx, 1, &item, &result), QRET_ERR_ARGUMENT);
	}
	item = good_item;
	item.size = 4097;
	ck_assert_int_eq(qret_step(ctx, 1, &item, &result), QRET_ERR_ARGUMENT);
	item = good_item;
	item.flags = 1;
	ck_assert_int_eq(qret_step(ctx, 1, &item, &result), QRET_ERR_ARGUMENT);
	larger.tail[7] = 1;
	ck_assert_int_eq(qret_step(ctx, 1, &larger.item, &result), QRET_ERR_ARGUMENT);
	ck_assert_int_eq(qret_step(ctx, 1, &good_item, NULL), QRET_ERR_ARGUMENT);
	result.size = sizeof(result) - 8;
	ck_assert_int_eq(qret_step(ctx, 1, &good_item, &result), QRET_ERR_ARGUMENT);
	result.size = 5000;
	ck_assert_int_eq(qret_step(ctx, 1, &good_item, &result), QRET_ERR_ARGUMENT);
	ck_assert_int_eq(result.done, 77);
	/* A newer host's item with nothing in its tail gets as far as the connection. */
	larger.tail[7] = 0;
	result.size = sizeof(result);
	qret_stop(ctx);
	ck_assert_int_eq(qret_step(ctx, 1, &larger.item, &result), QRET_STOPPED);
	qret_ctx_free(ctx);
}
END_TEST

START_TEST(calls_report_sizes)
{
	struct {
		struct qret_cycle_report report;
		uint8_t tail[40];
	} larger;
	struct qret_cycle_report report = { .size = 143 };

	begin();
	ck_assert_int_eq(qret_connect(ctx, "host=/nonexistent"), QRET_DONE);
	ck_assert_int_eq(qret_run_cycle(ctx, &report), QRET_ERR_ARGUMENT);
	report.size = 4097;
	ck_assert_int_eq(qret_run_cycle(ctx, &report), QRET_ERR_ARGUMENT);
	qret_stop(ctx);
	/* The shortest that is accepted: nothing behind it is written. */
	memset(&report, 0xee, sizeof(report));
	report.size = 144;
	ck_assert_int_eq(qret_run_cycle(ctx, &report), QRET_STOPPED);
	ck_assert_int_eq(report.outcome, QRET_STOPPED);
	ck_assert_int_eq(report.elapsed_us, 0);
	ck_assert_uint_eq(*((uint8_t *)&report + 144), 0xee);
	memset(&larger, 0xee, sizeof(larger));
	larger.report.size = sizeof(larger);
	ck_assert_int_eq(qret_run_cycle(ctx, &larger.report), QRET_STOPPED);
	ck_assert_uint_eq(larger.report.size, sizeof(larger));
	ck_assert_uint_eq(larger.tail[39], 0);
	ck_assert_int_eq(qret_run_cycle(ctx, NULL), QRET_STOPPED);
	qret_ctx_free(ctx);
}
END_TEST

START_TEST(calls_parts)
{
	int32_t version = 77;

	begin();
	ck_assert_int_eq(qret_connect(ctx, "host=/nonexistent"), QRET_DONE);
	ck_assert_int_eq(qret_schema_install(ctx, NULL), QRET_ERR_ARGUMENT);
	ck_assert_int_eq(qret_schema_install(ctx, "logs"), QRET_ERR_ARGUMENT);
	ck_assert_int_eq(qret_schema_install(ctx, ""), QRET_ERR_ARGUMENT);
	ck_assert_int_eq(qret_schema_version(ctx, "nope", &version), QRET_ERR_ARGUMENT);
	ck_assert_int_eq(qret_schema_version(ctx, "log", NULL), QRET_ERR_ARGUMENT);
	ck_assert_contains(qret_error_hint(ctx), "broker");
	ck_assert_int_eq(version, 77);
	qret_ctx_free(ctx);
}
END_TEST

/* While stopped nothing contacts the server, and the rest works. */
START_TEST(calls_stopped)
{
	struct qret_step_result result = { .size = sizeof(result) };
	struct qret_worklist *list = NULL;
	int32_t version;
	char value[16];

	begin();
	ck_assert_int_eq(qret_connect(ctx, "host=/nonexistent"), QRET_DONE);
	qret_stop(ctx);
	ck_assert_int_eq(qret_run_cycle(ctx, NULL), QRET_STOPPED);
	ck_assert_int_eq(qret_cycle_begin(ctx), QRET_STOPPED);
	ck_assert_int_eq(qret_worklist_build(ctx, &list), QRET_STOPPED);
	ck_assert_int_eq(qret_step(ctx, QRET_PHASE_METRICS_PURGE, NULL, &result), QRET_STOPPED);
	ck_assert_int_eq(qret_gate_take(ctx), QRET_STOPPED);
	ck_assert_int_eq(qret_schema_install(ctx, "log"), QRET_STOPPED);
	ck_assert_int_eq(qret_schema_version(ctx, "log", &version), QRET_STOPPED);
	ck_assert_int_eq(qret_set_option(ctx, "gate", "none"), QRET_DONE);
	ck_assert_int_eq(qret_get_option(ctx, "gate", value, sizeof(value), NULL), QRET_DONE);
	ck_assert_int_eq(qret_wait(ctx), QRET_DONE);
	qret_resume(ctx);
	ck_assert_int_eq(qret_cycle_begin(ctx), QRET_DONE);
	qret_ctx_free(ctx);
}
END_TEST

START_TEST(calls_poll_fds)
{
	struct qret_poll_fd fds[20];
	uint32_t count = 77;

	begin();
	ck_assert_int_eq(qret_poll_fds(ctx, fds, 1, NULL), QRET_ERR_ARGUMENT);
	ck_assert_int_eq(qret_poll_fds(ctx, NULL, 1, &count), QRET_ERR_ARGUMENT);
	ck_assert_uint_eq(count, 77);
	ck_assert_int_eq(qret_poll_fds(ctx, NULL, 0, &count), QRET_DONE);
	ck_assert_uint_eq(count, 1);
	fds[0].fd = -1;
	ck_assert_int_eq(qret_poll_fds(ctx, fds, 0, &count), QRET_DONE);
	ck_assert_int_eq(fds[0].fd, -1);
	ck_assert_int_eq(qret_poll_fds(ctx, fds, COUNT_OF(fds), &count), QRET_DONE);
	ck_assert_uint_eq(count, 1);
	ck_assert_int_ge(fds[0].fd, 0);
	ck_assert_int_eq(fds[0].events, QRET_POLL_READ);
	ck_assert_int_eq(qret_deadline_us(ctx), INT64_MAX);
	qret_ctx_free(ctx);
}
END_TEST

int main(void)
{
	const TTest *tests[] = { calls_calls_out_of_order,
		                 calls_second_begin,
		                 calls_step_arguments,
		                 calls_report_sizes,
		                 calls_parts,
		                 calls_stopped,
		                 calls_poll_fds,
		                 NULL };

	return unit_run("calls", tests);
}
