/* SPDX-License-Identifier: MIT */
/* A context: created, configured, guarded against misuse, freed. Does no I/O. */
#include "context.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"

int context_enter(struct qret_ctx *ctx)
{
	if (ctx == NULL)
		return QRET_ERR_ARGUMENT;
	if (ctx->owner != getpid())
		return QRET_ERR_FORKED;
	if (ctx->in_callback)
		return QRET_ERR_REENTRANT;
	error_clear(&ctx->error);
	return QRET_DONE;
}

int context_enter_idle(struct qret_ctx *ctx)
{
	int rc = context_enter(ctx);

	if (rc == QRET_DONE && cycle_in_progress(ctx))
		return context_fail(ctx, QRET_ERR_STATE,
		                    "call qret_cycle_process until its outcome is final",
		                    "a cycle is in progress");
	return rc;
}

int context_fail(struct qret_ctx *ctx, int code, const char *hint, const char *format, ...)
{
	char message[sizeof(ctx->error.message)];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(message, sizeof(message), format, arguments);
	va_end(arguments);
	return error_set(&ctx->error, code, code == QRET_ERR_NOMEM, hint, "%s", message);
}

int64_t context_number(const struct qret_ctx *ctx, enum option option)
{
	return option_number(&ctx->options, option);
}

const char *context_statement(const struct qret_ctx *ctx, enum statement statement)
{
	return ctx->statements.texts[statement];
}

int qret_ctx_new(struct qret_ctx **ret_ctx)
{
	struct qret_ctx *ctx;

	if (ret_ctx == NULL)
		return QRET_ERR_ARGUMENT;
	ctx = calloc(1, sizeof(*ctx));
	if (ctx == NULL)
		return QRET_ERR_NOMEM;
	ctx->owner = getpid();
	options_init(&ctx->options);
	atomic_init(&ctx->busy, 0);
	leader_init(&ctx->gate);
	ctx->log.in_callback = &ctx->in_callback;
	ctx->metrics.in_callback = &ctx->in_callback;
	cadence_init(&ctx->cadence,
	             (uint32_t)qret_now_us() ^ (uint32_t)ctx->owner ^ (uint32_t)(uintptr_t)ctx);
	if (wake_open(&ctx->wake) != 0 || pager_init(&ctx->pager) != QRET_DONE ||
	    floors_init(&ctx->floors) != QRET_DONE) {
		qret_ctx_free(ctx);
		return QRET_ERR_NOMEM;
	}
	*ret_ctx = ctx;
	return QRET_DONE;
}

/* A callback like any other: while it runs the context, if there is one, refuses every call. */
static void free_user_data(struct qret_ctx *ctx, qret_free_fn free_fn, void *user_data)
{
	bool was_in_callback = ctx != NULL && ctx->in_callback;

	if (free_fn == NULL)
		return;
	if (ctx != NULL)
		ctx->in_callback = true;
	free_fn(user_data);
	if (ctx != NULL)
		ctx->in_callback = was_in_callback;
}

static void free_callbacks(struct qret_ctx *ctx)
{
	ctx->log.fn = NULL;
	ctx->metrics.fn = NULL;
	free_user_data(ctx, ctx->log.free_fn, ctx->log.user_data);
	free_user_data(ctx, ctx->metrics.free_fn, ctx->metrics.user_data);
}

void qret_ctx_free(struct qret_ctx *ctx)
{
	if (ctx == NULL || ctx->in_callback)
		return;
	/* The free_fns first, on a whole context that refuses every call. */
	free_callbacks(ctx);
	for (int i = 0; i < LANES_MAX; i++) {
		struct session *session = &ctx->lanes[i].session;

		/* No other callback but the free_fns from here on. */
		session->log = NULL;
		if (ctx->owner != getpid())
			session_forget(session);
		else if (session->borrowed && !cycle_in_progress(ctx))
			session_rest(session);
		else
			session_abandon(session);
	}
	target_free(ctx->target);
	statements_free(&ctx->statements);
	options_free(&ctx->options);
	pager_free(&ctx->pager);
	floors_free(&ctx->floors);
	runner_free(&ctx->runner);
	wake_close(&ctx->wake);
	free(ctx);
}

/* ---- Options --------------------------------------------------------------------------------- */

static void log_clamped(struct qret_ctx *ctx, const char *name)
{
	struct line line;
	char value[32];

	if (!log_wants(&ctx->log, LOG_OPTION_CLAMPED))
		return;
	options_get(&ctx->options, name, value, sizeof(value));
	log_begin(&line, LOG_OPTION_CLAMPED);
	line_text(&line, "option", name);
	line_text(&line, "value", value);
	log_end(&ctx->log, LOG_OPTION_CLAMPED, &line);
}

/* Options may change between cycles, but not under a gate that was taken with them. */
static int enter_configuring(struct qret_ctx *ctx)
{
	int rc = context_enter_idle(ctx);

	if (rc == QRET_DONE && ctx->gate.held)
		return context_fail(ctx, QRET_ERR_STATE, "call qret_gate_release first",
		                    "the gate is held");
	return rc;
}

int qret_set_option(struct qret_ctx *ctx, const char *name, const char *value)
{
	bool clamped;
	int rc = enter_configuring(ctx);

	if (rc != QRET_DONE)
		return rc;
	if (name == NULL)
		return context_fail(ctx, QRET_ERR_ARGUMENT, NULL, "the option's name is NULL");
	rc = options_set(&ctx->options, name, value, &clamped, &ctx->error);
	if (rc != QRET_DONE)
		return rc;
	if (option_changes_statements(name))
		ctx->statements_current = false;
	if (clamped)
		log_clamped(ctx, name);
	return QRET_DONE;
}

int qret_get_option(struct qret_ctx *ctx, const char *name, char *ret_value, size_t capacity,
                    size_t *ret_length)
{
	int64_t length;
	int rc = context_enter(ctx);

	if (rc != QRET_DONE)
		return rc;
	if (name == NULL || (ret_value == NULL && capacity > 0))
		return context_fail(ctx, QRET_ERR_ARGUMENT, NULL,
		                    "the option's name is NULL, or ret_value with a capacity");
	length = options_get(&ctx->options, name, ret_value, capacity);
	if (length < 0)
		return context_fail(ctx, QRET_ERR_OPTION, "qretention-options(7) lists all options",
		                    "there is no option \"%.64s\"", name);
	if (ret_length != NULL)
		*ret_length = (size_t)length;
	return QRET_DONE;
}

int qret_load_env(struct qret_ctx *ctx)
{
	bool clamped[OPTION_COUNT];
	int rc = enter_configuring(ctx);

	if (rc != QRET_DONE)
		return rc;
	rc = options_load_env(&ctx->options, clamped, &ctx->error);
	for (enum option option = 0; option < OPTION_COUNT && rc == QRET_DONE; option++) {
		if (clamped[option])
			log_clamped(ctx, option_name(option));
	}
	return rc;
}

/* ---- Callbacks ------------------------------------------------------------------------------- */

int qret_set_log(struct qret_ctx *ctx, int32_t max_level, qret_log_fn fn, void *user_data,
                 qret_free_fn free_fn)
{
	int rc = context_enter(ctx);
	qret_free_fn old_free;
	void *old_data;

	if (rc == QRET_DONE && (max_level < QRET_LOG_NONE || max_level > QRET_LOG_DEBUG))
		rc = context_fail(ctx, QRET_ERR_ARGUMENT, NULL, "max_level %d is not a log level",
		                  (int)max_level);
	if (rc != QRET_DONE) {
		free_user_data(ctx, free_fn, user_data);
		return rc;
	}
	old_free = ctx->log.free_fn;
	old_data = ctx->log.user_data;
	ctx->log.max_level = max_level;
	ctx->log.fn = fn;
	ctx->log.user_data = user_data;
	ctx->log.free_fn = free_fn;
	free_user_data(ctx, old_free, old_data);
	return QRET_DONE;
}

int qret_set_metrics(struct qret_ctx *ctx, qret_metric_fn fn, void *user_data, qret_free_fn free_fn)
{
	int rc = context_enter(ctx);
	qret_free_fn old_free;
	void *old_data;

	if (rc != QRET_DONE) {
		free_user_data(ctx, free_fn, user_data);
		return rc;
	}
	old_free = ctx->metrics.free_fn;
	old_data = ctx->metrics.user_data;
	ctx->metrics.fn = fn;
	ctx->metrics.user_data = user_data;
	ctx->metrics.free_fn = free_fn;
	free_user_data(ctx, old_free, old_data);
	return QRET_DONE;
}

/* ---- Stop and idleness ----------------------------------------------------------------------- */

/* A forked child shares the pipe with its parent, and must not wake it. */
static bool is_ours(const struct qret_ctx *ctx)
{
	return ctx != NULL && ctx->owner == getpid();
}

void qret_stop(struct qret_ctx *ctx)
{
	if (is_ours(ctx))
		wake_stop(&ctx->wake);
}

void qret_resume(struct qret_ctx *ctx)
{
	if (is_ours(ctx))
		wake_resume(&ctx->wake);
}

int qret_set_busy(struct qret_ctx *ctx, int32_t busy)
{
	if (ctx == NULL)
		return QRET_ERR_ARGUMENT;
	if (!is_ours(ctx))
		return QRET_ERR_FORKED;
	atomic_store(&ctx->busy, busy != 0);
	return QRET_DONE;
}

/* ---- Accessors ------------------------------------------------------------------------------- */

const char *qret_error_message(struct qret_ctx *ctx)
{
	return ctx == NULL ? "" : ctx->error.message;
}

const char *qret_error_sqlstate(struct qret_ctx *ctx)
{
	return ctx == NULL ? "" : ctx->error.sqlstate;
}

const char *qret_error_hint(struct qret_ctx *ctx)
{
	return ctx == NULL ? "" : ctx->error.hint;
}

int32_t qret_error_is_retryable(struct qret_ctx *ctx)
{
	return ctx != NULL && ctx->error.retryable;
}

int64_t qret_next_cycle_us(struct qret_ctx *ctx)
{
	return ctx == NULL ? NO_DEADLINE : ctx->cadence.next_us;
}

const char *qret_version(void)
{
	return QRET_VERSION;
}

uint32_t qret_version_number(void)
{
	return QRET_VERSION_NUMBER;
}
