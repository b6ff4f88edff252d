/* SPDX-License-Identifier: MIT */
/*
 * Installs one entry of an install list. Every entry commits by itself under the session's lock
 * timeout and is tried again when it meets load or a second installer, so that a live broker never
 * queues behind it.
 */
#include "install.h"

#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "context.h"
#include "envelope.h"
#include "query.h"
#include "wait.h"

#define ATTEMPTS_MOST    60
#define ATTEMPT_PAUSE_MS 100
#define REPEATS_MOST     10000000

/* ---- One statement, waited for -------------------------------------------------------------- */

static int call(struct qret_ctx *ctx, bool enveloped, const char *text,
                const struct parameters *parameters, struct pg_result **ret_answer)
{
	struct session *session = &ctx->lanes[0].session;
	void *owner;
	int rc;

	if (wake_stopped(&ctx->wake))
		return QRET_STOPPED;
	rc = enveloped ? envelope_send(session, NULL, text, parameters, ctx)
	               : query_send_plain(session, text, parameters, ctx);
	if (rc != QRET_DONE) {
		ctx->error = session->lost;
		return rc;
	}
	while ((rc = query_collect(session, ret_answer, &owner, &ctx->error)) == QRET_WAIT) {
		wake_drain(&ctx->wake);
		wait_session(ctx, session);
	}
	return rc;
}

int install_number(struct qret_ctx *ctx, const char *text, const struct parameters *parameters,
                   int64_t *ret_number)
{
	struct pg_result *answer = NULL;
	int rc = call(ctx, true, text, parameters, &answer);

	if (rc == QRET_DONE)
		*ret_number = result_integer(answer, 0, 0, 0);
	result_free(answer);
	return rc;
}

/* One that cannot run in a transaction, so without the envelope. */
static int call_plain(struct qret_ctx *ctx, const char *text)
{
	struct pg_result *answer = NULL;
	int rc = call(ctx, false, text, NULL, &answer);

	result_free(answer);
	return rc;
}

/* ---- The kinds of entries -------------------------------------------------------------------- */

/*
 * Losing to another installer or to a lock is no failure: the same statement goes through a
 * moment later.
 */
static bool worth_another_try(const struct error *error)
{
	static const char *const states[] = { "55P03", "40P01", "40001", "23505", "42P07",
		                              "42P06", "42710", "42723", "57014" };

	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		if (strcmp(error->sqlstate, states[i]) == 0)
			return true;
	}
	return strcmp(error->sqlstate, "XX000") == 0 &&
	       strstr(error->message, "concurrently updated") != NULL;
}

static int try_statement(struct qret_ctx *ctx, const char *text)
{
	struct pg_result *answer = NULL;
	int rc = call(ctx, true, text, NULL, &answer);

	result_free(answer);
	return rc;
}

static void log_foreign(struct qret_ctx *ctx, const char *signature)
{
	struct line line;

	if (!log_wants(&ctx->log, LOG_FOREIGN_FUNCTION))
		return;
	log_begin(&line, LOG_FOREIGN_FUNCTION);
	line_text(&line, "function", signature);
	log_end(&ctx->log, LOG_FOREIGN_FUNCTION, &line);
}

/* A function goes through the register, which never replaces what somebody else created. */
static int try_object(struct qret_ctx *ctx, enum option schema, const struct sql_entry *entry,
                      const char *text)
{
	struct parameters parameters = { 0 };
	struct pg_result *answer = NULL;
	char verdict[32];
	int rc;

	parameter_text(&parameters, entry->name);
	parameter_text(&parameters, text);
	rc = call(ctx, true,
	          schema == OPTION_EVENT_SCHEMA ? ctx->statements.event_install
	                                        : ctx->statements.log_install,
	          &parameters, &answer);
	if (rc == QRET_DONE) {
		result_text(answer, 0, 0, verdict, sizeof(verdict));
		if (strcmp(verdict, "foreign") == 0)
			log_foreign(ctx, entry->name);
	}
	result_free(answer);
	return rc;
}

/* Drops what an interrupted build left behind; see client/install_invalid_index.sql. */
static int drop_invalid_index(struct qret_ctx *ctx, const struct sql_entry *entry)
{
	struct parameters parameters = { 0 };
	struct pg_result *answer = NULL;
	char drop[512] = "";
	int rc;

	parameter_text(&parameters, entry->name);
	rc = call(ctx, true, context_statement(ctx, STATEMENT_INSTALL_INVALID_INDEX), &parameters,
	          &answer);
	if (rc == QRET_DONE && result_rows(answer) > 0)
		result_text(answer, 0, 0, drop, sizeof(drop));
	result_free(answer);
	return rc != QRET_DONE || drop[0] == '\0' ? rc : call_plain(ctx, drop);
}

/* By name, since older servers know the first alone. */
static const char no_limits[] =
	"SELECT pg_catalog.set_config(s.name, '0', false) FROM pg_catalog.pg_settings AS s"
	" WHERE s.name OPERATOR(pg_catalog.=) ANY ('{statement_timeout,transaction_timeout}')";

/*
 * Built without blocking writers. It may take longer than any statement limit, and cannot run in
 * a transaction.
 */
static int try_index(struct qret_ctx *ctx, const struct sql_entry *entry, const char *text)
{
	struct session *session = &ctx->lanes[0].session;
	int64_t limit_ms = session->settings.statement_timeout_ms;
	int rc = drop_invalid_index(ctx, entry);

	if (rc == QRET_DONE && !session->settings.wrapped)
		rc = call_plain(ctx, no_limits);
	if (rc != QRET_DONE)
		return rc;
	session->settings.statement_timeout_ms = 0;
	rc = call_plain(ctx, text);
	session->settings.statement_timeout_ms = limit_ms;
	return rc;
}

static int try_repeat(struct qret_ctx *ctx, const char *text)
{
	int rc = QRET_DONE;
	int64_t left = 1;

	for (int64_t i = 0; rc == QRET_DONE && left != 0 && i < REPEATS_MOST; i++)
		rc = install_number(ctx, text, NULL, &left);
	return rc;
}

static int try_entry(struct qret_ctx *ctx, enum option schema, const struct sql_entry *entry,
                     const char *text)
{
	if (strncmp(entry->kind, "object", 6) == 0)
		return try_object(ctx, schema, entry, text);
	if (strncmp(entry->kind, "index", 5) == 0)
		return try_index(ctx, entry, text);
	if (strncmp(entry->kind, "repeat", 6) == 0)
		return try_repeat(ctx, text);
	return try_statement(ctx, text);
}

/* Some entries say themselves whether the database needs them. */
static int ask_needed(struct qret_ctx *ctx, const struct sql_entry *entry,
                      const struct template_name *names, bool *ret_needed)
{
	struct pg_result *answer = NULL;
	char *text;
	int rc;

	*ret_needed = true;
	if (entry->needed == NULL)
		return QRET_DONE;
	text = template_expand(entry->needed, names);
	if (text == NULL)
		return context_fail(ctx, QRET_ERR_NOMEM, NULL, "out of memory");
	rc = call(ctx, true, text, NULL, &answer);
	if (rc == QRET_DONE)
		*ret_needed = result_bool(answer, 0, 0);
	result_free(answer);
	free(text);
	return rc;
}

static int install_text(struct qret_ctx *ctx, enum option schema, const struct sql_entry *entry,
                        const char *text)
{
	int rc = QRET_DONE;

	for (int attempt = 0; attempt < ATTEMPTS_MOST; attempt++) {
		rc = try_entry(ctx, schema, entry, text);
		if (rc >= 0 || ctx->lanes[0].session.state != SESSION_READY ||
		    !worth_another_try(&ctx->error))
			break;
		wait_once(ctx, clock_after_ms(qret_now_us(), ATTEMPT_PAUSE_MS));
	}
	if (rc < 0)
		error_prefix(&ctx->error, entry->path);
	return rc;
}

int install_entry(struct qret_ctx *ctx, enum option schema, const struct sql_entry *entry,
                  const struct template_name *names)
{
	bool needed;
	int rc = ask_needed(ctx, entry, names, &needed);
	char *text;

	if (rc != QRET_DONE || !needed)
		return rc;
	text = template_expand(entry->text, names);
	if (text == NULL)
		return context_fail(ctx, QRET_ERR_NOMEM, NULL, "out of memory");
	rc = install_text(ctx, schema, entry, text);
	free(text);
	return rc;
}
