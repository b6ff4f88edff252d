/* SPDX-License-Identifier: MIT */
/* Misuse of the interface without a server: each gets its named error, and nothing is lost. */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "context.h"

static struct qret_ctx *ctx;

static struct {
	int records, freed;
	char text[2048];
	int32_t level;
	int rc; /* what a call from inside the callback returned */
} seen;

static void on_record(void *user_data, const struct qret_log_record *record)
{
	(void)user_data;
	seen.records++;
	seen.level = record->level;
	snprintf(seen.text, sizeof(seen.text), "%s", record->text);
}

static void on_free(void *user_data)
{
	ck_assert_ptr_eq(user_data, &seen);
	seen.freed++;
}

static void begin(void)
{
	memset(&seen, 0, sizeof(seen));
	ctx = NULL;
	ck_assert_int_eq(qret_ctx_new(&ctx), QRET_DONE);
	ck_assert_ptr_nonnull(ctx);
}

START_TEST(context_versions)
{
	char text[32];

	snprintf(text, sizeof(text), "%d.%d.%d", QRET_VERSION_MAJOR, QRET_VERSION_MINOR,
	         QRET_VERSION_PATCH);
	ck_assert_str_eq(qret_version(), text);
	ck_assert_str_eq(QRET_VERSION, text);
	ck_assert_uint_eq(qret_version_number(), QRET_VERSION_NUMBER);
}
END_TEST

START_TEST(context_new_and_free_leave_nothing)
{
	int before = unit_open_descriptors();

	for (int i = 0; i < 50; i++) {
		begin();
		qret_ctx_free(ctx);
	}
	ck_assert_int_eq(unit_open_descriptors(), before);
	qret_ctx_free(NULL);
	ck_assert_int_eq(qret_ctx_new(NULL), QRET_ERR_ARGUMENT);
}
END_TEST

/* Every call takes a NULL context: an error, or for those that return none, nothing. */
START_TEST(context_null)
{
	struct qret_cycle_report report = { .size = sizeof(report) };
	struct qret_step_result result = { .size = sizeof(result) };
	struct qret_worklist *list = NULL;
	uint32_t count;
	int32_t number;
	char value[8];

	ck_assert_int_eq(qret_set_option(NULL, "gate", "none"), QRET_ERR_ARGUMENT);
	ck_assert_int_eq(qret_get_option(NULL, "gate", value, sizeof(value), NULL),
	                 QRET_ERR_ARGUMENT);
	ck_assert_int_eq(qret_load_env(NULL), QRET_ERR_ARGUMENT);
	ck_assert_int_eq(qret_connect(NULL, ""), QRET_ERR_ARGUMENT);
	ck_assert_int_eq(qret_attach(NULL, NULL), QRET_ERR_ARGUMENT);
	ck_assert_int_eq(qret_detach(NULL, &number), QRET_ERR_ARGUMENT);
	ck_assert_int_eq(qret_schema_install(NULL, "log"), QRET_ERR_ARGUMENT);
	ck_assert_int_eq(qret_schema_version(NULL, "log", &number), QRET_ERR_ARGUMENT);
	ck_assert_int_eq(qret_worklist_build(NULL, &list), QRET_ERR_ARGUMENT);
	ck_assert_int_eq(qret_step(NULL, QRET_PHASE_METRICS_PURGE, NULL, &result),
	                 QRET_ERR_ARGUMENT);
	ck_assert_int_eq(qret_gate_take(NULL), QRET_ERR_ARGUMENT);
	ck_assert_int_eq(qret_gate_release(NULL), QRET_ERR_ARGUMENT);
	ck_assert_int_eq(qret_run_cycle(NULL, &report), QRET_ERR_ARGUMENT);
	ck_assert_int_eq(qret_cycle_begin(NULL), QRET_ERR_ARGUMENT);
	ck_assert_int_eq(qret_cycle_process(NULL), QRET_ERR_ARGUMENT);
	ck_assert_int_eq(qret_cycle_get_report(NULL, &report), QRET_ERR_ARGUMENT);
	ck_assert_int_eq(qret_poll_fds(NULL, NULL, 0, &count), QRET_ERR_ARGUMENT);
	ck_assert_int_eq(qret_deadline_us(NULL), INT64_MAX);
	ck_assert_int_eq(qret_next_cycle_us(NULL), INT64_MAX);
	ck_assert_int_eq(qret_wait(NULL), QRET_ERR_ARGUMENT);
	ck_assert_int_eq(qret_set_busy(NULL, 1), QRET_ERR_ARGUMENT);
	qret_stop(NULL);
	qret_resume(NULL);
	ck_assert_str_eq(qret_error_message(NULL), "");
	ck_assert_str_eq(qret_error_sqlstate(NULL), "");
	ck_assert_str_eq(qret_error_hint(NULL), "");
	ck_assert_int_eq(qret_error_is_retryable(NULL), 0);
}
END_TEST

START_TEST(context_options_misused)
{
	char value[8] = "before";
	size_t length = 77;

	begin();
	ck_assert_int_eq(qret_set_option(ctx, NULL, "1"), QRET_ERR_ARGUMENT);
	ck_assert_int_eq(qret_set_option(ctx, "nope", "1"), QRET_ERR_OPTION);
	ck_assert_contains(qret_error_message(ctx), "nope");
	ck_assert_str_ne(qret_error_hint(ctx), "");
	ck_assert_int_eq(qret_set_option(ctx, "", "1"), QRET_ERR_OPTION);
	ck_assert_int_eq(qret_set_option(ctx, "interval_ms", "soon"), QRET_ERR_OPTION);
	ck_assert_contains(qret_error_message(ctx), "interval_ms");
	ck_assert_int_eq(qret_error_is_retryable(ctx), 0);
	ck_assert_int_eq(qret_get_option(ctx, NULL, value, sizeof(value), &length),
	                 QRET_ERR_ARGUMENT);
	ck_assert_int_eq(qret_get_option(ctx, "gate", NULL, 5, &length), QRET_ERR_ARGUMENT);
	ck_assert_int_eq(qret_get_option(ctx, "nope", value, sizeof(value), &length),
	                 QRET_ERR_OPTION);
	/* outputs are written only with DONE */
	ck_assert_str_eq(value, "before");
	ck_assert_uint_eq(length, 77);
	qret_ctx_free(ctx);
}
END_TEST

START_TEST(context_get_option_truncates)
{
	char value[5];
	size_t length = 0;

	begin();
	ck_assert_int_eq(qret_get_option(ctx, "gate", value, sizeof(value), &length), QRET_DONE);
	ck_assert_str_eq(value, "sess");
	ck_assert_uint_eq(length, 7);
	ck_assert_int_eq(qret_get_option(ctx, "gate", NULL, 0, &length), QRET_DONE);
	ck_assert_uint_eq(length, 7);
	ck_assert_int_eq(qret_get_option(ctx, "gate", value, 0, NULL), QRET_DONE);
	ck_assert_str_eq(value, "sess");
	ck_assert_int_eq(qret_get_option(ctx, "gate", value, 1, NULL), QRET_DONE);
	ck_assert_str_eq(value, "");
	qret_ctx_free(ctx);
}
END_TEST

/* The next call forgets the failure of the last; accessors do not. */
START_TEST(context_error_is_of_the_last_call)
{
	begin();
	qret_set_option(ctx, "gate", "x");
	ck_assert_str_ne(qret_error_message(ctx), "");
	ck_assert_str_ne(qret_error_hint(ctx), "");
	ck_assert_int_eq(qret_error_is_retryable(ctx), 0);
	ck_assert_str_eq(qret_error_sqlstate(ctx), "");
	ck_assert_str_ne(qret_error_message(ctx), "");
	qret_next_cycle_us(ctx);
	qret_deadline_us(ctx);
	ck_assert_str_ne(qret_error_message(ctx), "");
	ck_assert_int_eq(qret_set_option(ctx, "gate", "none"), QRET_DONE);
	ck_assert_str_eq(qret_error_message(ctx), "");
	qret_ctx_free(ctx);
}
END_TEST

START_TEST(context_floor_warns)
{
	begin();
	ck_assert_int_eq(qret_set_log(ctx, QRET_LOG_WARN, on_record, &seen, on_free), QRET_DONE);
	ck_assert_int_eq(qret_set_option(ctx, "partition_cleanup_days", "0"), QRET_DONE);
	ck_assert_int_eq(seen.records, 1);
	ck_assert_int_eq(seen.level, QRET_LOG_WARN);
	ck_assert_contains(seen.text, "event=option_clamped");
	ck_assert_contains(seen.text, "option=partition_cleanup_days value=1");
	ck_assert_int_eq(qret_set_option(ctx, "partition_cleanup_days", "1"), QRET_DONE);
	ck_assert_int_eq(seen.records, 1);
	qret_ctx_free(ctx);
}
END_TEST

START_TEST(context_environment_floors_warn)
{
	begin();
	ck_assert_int_eq(qret_set_log(ctx, QRET_LOG_WARN, on_record, &seen, NULL), QRET_DONE);
	setenv("PARTITION_CLEANUP_DAYS", "0", 1);
	setenv("METRICS_RETENTION_DAYS", "-3", 1);
	ck_assert_int_eq(qret_load_env(ctx), QRET_DONE);
	/* both were raised, so both are told */
	ck_assert_int_eq(seen.records, 2);
	ck_assert_contains(seen.text, "option=metrics_retention_days value=1");
	unsetenv("PARTITION_CLEANUP_DAYS");
	unsetenv("METRICS_RETENTION_DAYS");
	qret_ctx_free(ctx);
}
END_TEST

START_TEST(context_environment_all_or_nothing)
{
	char value[32];

	begin();
	setenv("RETENTION_INTERVAL", "100", 1);
	setenv("RETENTION_BATCH_SIZE", "-1", 1);
	ck_assert_int_eq(qret_load_env(ctx), QRET_ERR_OPTION);
	ck_assert_contains(qret_error_message(ctx), "RETENTION_BATCH_SIZE");
	ck_assert_int_eq(qret_get_option(ctx, "interval_ms", value, sizeof(value), NULL),
	                 QRET_DONE);
	ck_assert_str_eq(value, "5000");
	setenv("RETENTION_BATCH_SIZE", "", 1);
	ck_assert_int_eq(qret_load_env(ctx), QRET_DONE);
	ck_assert_int_eq(qret_get_option(ctx, "interval_ms", value, sizeof(value), NULL),
	                 QRET_DONE);
	ck_assert_str_eq(value, "100");
	unsetenv("RETENTION_INTERVAL");
	unsetenv("RETENTION_BATCH_SIZE");
	qret_ctx_free(ctx);
}
END_TEST

/* B87: what the options say is what the environment and the setter said, last one first. */
START_TEST(context_option_order)
{
	char value[32];

	begin();
	setenv("RETENTION_INTERVAL", "100", 1);
	ck_assert_int_eq(qret_load_env(ctx), QRET_DONE);
	ck_assert_int_eq(qret_set_option(ctx, "interval_ms", "200"), QRET_DONE);
	qret_get_option(ctx, "interval_ms", value, sizeof(value), NULL);
	ck_assert_str_eq(value, "200");
	ck_assert_int_eq(qret_load_env(ctx), QRET_DONE);
	qret_get_option(ctx, "interval_ms", value, sizeof(value), NULL);
	ck_assert_str_eq(value, "100");
	unsetenv("RETENTION_INTERVAL");
	qret_ctx_free(ctx);
}
END_TEST

START_TEST(context_free_fn_once)
{
	begin();
	ck_assert_int_eq(qret_set_log(ctx, QRET_LOG_DEBUG, on_record, &seen, on_free), QRET_DONE);
	ck_assert_int_eq(seen.freed, 0);
	ck_assert_int_eq(qret_set_log(ctx, QRET_LOG_DEBUG, on_record, &seen, on_free), QRET_DONE);
	ck_assert_int_eq(seen.freed, 1);
	ck_assert_int_eq(qret_set_log(ctx, QRET_LOG_NONE, NULL, NULL, NULL), QRET_DONE);
	ck_assert_int_eq(seen.freed, 2);
	ck_assert_int_eq(qret_set_metrics(ctx, NULL, &seen, on_free), QRET_DONE);
	ck_assert_int_eq(qret_set_log(ctx, QRET_LOG_NONE, NULL, &seen, on_free), QRET_DONE);
	qret_ctx_free(ctx);
	ck_assert_int_eq(seen.freed, 4);
	ck_assert_int_eq(seen.records, 0);
}
END_TEST

/* Also when the setter fails, whatever the reason; the one that was set stays. */
START_TEST(context_free_fn_once_on_failure)
{
	begin();
	ck_assert_int_eq(qret_set_log(NULL, QRET_LOG_INFO, on_record, &seen, on_free),
	                 QRET_ERR_ARGUMENT);
	ck_assert_int_eq(seen.freed, 1);
	ck_assert_int_eq(qret_set_metrics(NULL, NULL, &seen, on_free), QRET_ERR_ARGUMENT);
	ck_assert_int_eq(seen.freed, 2);
	ck_assert_int_eq(qret_set_log(ctx, 5, on_record, &seen, on_free), QRET_ERR_ARGUMENT);
	ck_assert_int_eq(seen.freed, 3);
	ck_assert_int_eq(qret_set_log(ctx, -1, on_record, &seen, on_free), QRET_ERR_ARGUMENT);
	ck_assert_int_eq(seen.freed, 4);
	ck_assert_int_eq(qret_set_log(ctx, QRET_LOG_WARN, on_record, &seen, on_free), QRET_DONE);
	ck_assert_int_eq(qret_set_log(ctx, 99, NULL, &seen, on_free), QRET_ERR_ARGUMENT);
	ck_assert_int_eq(seen.freed, 5);
	qret_set_option(ctx, "metrics_retention_days", "0");
	ck_assert_int_eq(seen.records, 1);
	qret_ctx_free(ctx);
	ck_assert_int_eq(seen.freed, 6);
}
END_TEST

static void on_free_call_back(void *user_data)
{
	ck_assert_ptr_eq(user_data, &seen);
	seen.freed++;
	ck_assert_int_eq(qret_run_cycle(ctx, NULL), QRET_ERR_REENTRANT);
	ck_assert_int_eq(qret_set_option(ctx, "gate", "none"), QRET_ERR_REENTRANT);
	qret_ctx_free(ctx);
}

/* A free_fn is a callback too, whichever way it comes to run. */
START_TEST(context_free_fn_calls_back)
{
	char value[8];

	begin();
	ck_assert_int_eq(qret_set_log(ctx, 5, on_record, &seen, on_free_call_back),
	                 QRET_ERR_ARGUMENT);
	ck_assert_int_eq(qret_set_log(ctx, 0, NULL, &seen, on_free_call_back), QRET_DONE);
	ck_assert_int_eq(qret_set_log(ctx, 0, NULL, NULL, NULL), QRET_DONE);
	ck_assert_int_eq(qret_set_metrics(ctx, NULL, &seen, on_free_call_back), QRET_DONE);
	ck_assert_int_eq(qret_get_option(ctx, "gate", value, sizeof(value), NULL), QRET_DONE);
	ck_assert_int_eq(seen.freed, 2);
	qret_ctx_free(ctx);
	ck_assert_int_eq(seen.freed, 3);
}
END_TEST

static void call_back(void *user_data, const struct qret_log_record *record)
{
	struct qret_cycle_report report = { .size = sizeof(report) };
	char value[8];
	uint32_t count;

	(void)user_data;
	(void)record;
	ck_assert_int_eq(qret_set_option(ctx, "gate", "none"), QRET_ERR_REENTRANT);
	ck_assert_int_eq(qret_get_option(ctx, "gate", value, sizeof(value), NULL),
	                 QRET_ERR_REENTRANT);
	ck_assert_int_eq(qret_load_env(ctx), QRET_ERR_REENTRANT);
	ck_assert_int_eq(qret_set_log(ctx, 0, NULL, &seen, on_free), QRET_ERR_REENTRANT);
	ck_assert_int_eq(qret_set_metrics(ctx, NULL, &seen, on_free), QRET_ERR_REENTRANT);
	ck_assert_int_eq(qret_connect(ctx, ""), QRET_ERR_REENTRANT);
	ck_assert_int_eq(qret_detach(ctx, NULL), QRET_ERR_REENTRANT);
	ck_assert_int_eq(qret_run_cycle(ctx, &report), QRET_ERR_REENTRANT);
	ck_assert_int_eq(qret_cycle_begin(ctx), QRET_ERR_REENTRANT);
	ck_assert_int_eq(qret_cycle_process(ctx), QRET_ERR_REENTRANT);
	ck_assert_int_eq(qret_poll_fds(ctx, NULL, 0, &count), QRET_ERR_REENTRANT);
	ck_assert_int_eq(qret_wait(ctx), QRET_ERR_REENTRANT);
	ck_assert_int_eq(qret_gate_take(ctx), QRET_ERR_REENTRANT);
	ck_assert_int_eq(qret_schema_install(ctx, "log"), QRET_ERR_REENTRANT);
	qret_ctx_free(ctx); /* not from here: nothing happens */
	qret_stop(ctx);     /* the one call that is allowed */
	seen.records++;
}

START_TEST(context_reentrance)
{
	char value[8];

	begin();
	ck_assert_int_eq(qret_set_log(ctx, QRET_LOG_WARN, call_back, NULL, NULL), QRET_DONE);
	ck_assert_int_eq(qret_set_option(ctx, "metrics_retention_days", "0"), QRET_DONE);
	ck_assert_int_eq(seen.records, 1);
	ck_assert_int_eq(seen.freed, 2);
	ck_assert_int_eq(qret_get_option(ctx, "gate", value, sizeof(value), NULL), QRET_DONE);
	ck_assert_str_eq(value, "session");
	ck_assert_int_eq(qret_connect(ctx, "host=/nonexistent"), QRET_DONE);
	ck_assert_int_eq(qret_run_cycle(ctx, NULL), QRET_STOPPED);
	qret_ctx_free(ctx);
}
END_TEST

/* The first cycle is due at once, so waiting for it does not sleep. */
START_TEST(context_first_cycle_is_due)
{
	begin();
	ck_assert_int_le(qret_next_cycle_us(ctx), qret_now_us());
	ck_assert_int_eq(qret_wait(ctx), QRET_DONE);
	qret_ctx_free(ctx);
}
END_TEST

/* B67. What the child tries is refused, and the parent goes on as if it had not been. */
START_TEST(context_forked)
{
	struct qret_cycle_report report = { .size = sizeof(report) };
	int status = 0, wrong = 0;
	uint32_t count;
	pid_t child;

	begin();
	ck_assert_int_eq(qret_connect(ctx, "host=/nonexistent"), QRET_DONE);
	ck_assert_int_eq(qret_set_log(ctx, QRET_LOG_DEBUG, on_record, &seen, on_free), QRET_DONE);
	fflush(NULL);
	child = fork();
	if (child == 0) {
		wrong += qret_run_cycle(ctx, &report) != QRET_ERR_FORKED;
		wrong += qret_cycle_begin(ctx) != QRET_ERR_FORKED;
		wrong += qret_set_option(ctx, "gate", "none") != QRET_ERR_FORKED;
		wrong += qret_load_env(ctx) != QRET_ERR_FORKED;
		wrong += qret_connect(ctx, "") != QRET_ERR_FORKED;
		wrong += qret_gate_take(ctx) != QRET_ERR_FORKED;
		wrong += qret_set_busy(ctx, 1) != QRET_ERR_FORKED;
		wrong += qret_wait(ctx) != QRET_ERR_FORKED;
		wrong += qret_poll_fds(ctx, NULL, 0, &count) != QRET_ERR_FORKED;
		wrong += qret_set_metrics(ctx, NULL, &seen, on_free) != QRET_ERR_FORKED;
		wrong += seen.freed != 1;
		qret_stop(ctx);
		qret_resume(ctx);
		qret_ctx_free(ctx);
		wrong += seen.freed != 2;
		_exit(wrong);
	}
	ck_assert_int_gt(child, 0);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), 0);
	ck_assert_int_eq(seen.freed, 0);
	/* The child's stop did not reach us. */
	ck_assert_int_eq(qret_cycle_begin(ctx), QRET_DONE);
	qret_ctx_free(ctx);
	ck_assert_int_eq(seen.freed, 1);
}
END_TEST

START_TEST(context_many_are_independent)
{
	struct qret_ctx *other = NULL;
	char value[16];

	begin();
	ck_assert_int_eq(qret_ctx_new(&other), QRET_DONE);
	ck_assert_int_eq(qret_set_option(other, "gate", "none"), QRET_DONE);
	qret_stop(other);
	ck_assert_int_eq(qret_get_option(ctx, "gate", value, sizeof(value), NULL), QRET_DONE);
	ck_assert_str_eq(value, "session");
	ck_assert_int_eq(qret_connect(ctx, "host=/nonexistent"), QRET_DONE);
	ck_assert_int_eq(qret_cycle_begin(ctx), QRET_DONE);
	qret_ctx_free(other);
	qret_ctx_free(ctx);
}
END_TEST

int main(void)
{
	const TTest *tests[] = { context_versions,
		                 context_new_and_free_leave_nothing,
		                 context_null,
		                 context_options_misused,
		                 context_get_option_truncates,
		                 context_error_is_of_the_last_call,
		                 context_floor_warns,
		                 context_environment_floors_warn,
		                 context_environment_all_or_nothing,
		                 context_option_order,
		                 context_free_fn_once,
		                 context_free_fn_once_on_failure,
		                 context_free_fn_calls_back,
		                 context_reentrance,
		                 context_first_cycle_is_due,
		                 context_forked,
		                 context_many_are_independent,
		                 NULL };

	return unit_run("context", tests);
}
