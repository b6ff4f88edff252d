/* SPDX-License-Identifier: MIT */
/*
 * Installs the parts of the schema and tells their versions. Every entry of an install list
 * commits by itself under the session's lock timeout and is tried again when it meets load or a
 * second installer, so that a live broker never queues behind it.
 */
#include "schema.h"

#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "context.h"
#include "envelope.h"
#include "identifier.h"
#include "query.h"
#include "template.h"
#include "wait.h"

#define ATTEMPTS_MOST    60
#define ATTEMPT_PAUSE_MS 100
#define REPEATS_MOST     10000000

struct part {
	const char *name;
	const struct sql_entry *entries;
	enum option schema;
};

static const struct part parts[] = {
	{ "broker", sql_install_broker, OPTION_LOG_SCHEMA },
	{ "log", sql_install_log, OPTION_LOG_SCHEMA },
	{ "event", sql_install_event, OPTION_EVENT_SCHEMA },
};

static const struct part *find_part(const char *name)
{
	for (size_t i = 0; name != NULL && i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (strcmp(parts[i].name, name) == 0)
			return &parts[i];
	}
	return NULL;
}

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

static int call_number(struct qret_ctx *ctx, const char *text, const struct parameters *parameters,
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
static int try_object(struct qret_ctx *ctx, const struct part *part, const struct sql_entry *entry,
                      const char *text)
{
	struct parameters parameters = { 0 };
	struct pg_result *answer = NULL;
	char verdict[32];
	int rc;

	parameter_text(&parameters, entry->name);
	parameter_text(&parameters, text);
	rc = call(ctx, true,
	          part->schema == OPTION_EVENT_SCHEMA ? ctx->statements.event_install
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
		rc = call_number(ctx, text, NULL, &left);
	return rc;
}

static int try_entry(struct qret_ctx *ctx, const struct part *part, const struct sql_entry *entry,
                     const char *text)
{
	if (strncmp(entry->kind, "object", 6) == 0)
		return try_object(ctx, part, entry, text);
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

static int install_text(struct qret_ctx *ctx, const struct part *part,
                        const struct sql_entry *entry, const char *text)
{
	int rc = QRET_DONE;

	for (int attempt = 0; attempt < ATTEMPTS_MOST; attempt++) {
		rc = try_entry(ctx, part, entry, text);
		if (rc >= 0 || ctx->lanes[0].session.state != SESSION_READY ||
		    !worth_another_try(&ctx->error))
			break;
		wait_once(ctx, clock_after_ms(qret_now_us(), ATTEMPT_PAUSE_MS));
	}
	if (rc < 0)
		error_prefix(&ctx->error, entry->path);
	return rc;
}

static int install_entry(struct qret_ctx *ctx, const struct part *part,
                         const struct sql_entry *entry, const struct template_name *names)
{
	bool needed;
	int rc = ask_needed(ctx, entry, names, &needed);
	char *text;

	if (rc != QRET_DONE || !needed)
		return rc;
	text = template_expand(entry->text, names);
	if (text == NULL)
		return context_fail(ctx, QRET_ERR_NOMEM, NULL, "out of memory");
	rc = install_text(ctx, part, entry, text);
	free(text);
	return rc;
}

/* ---- A part ---------------------------------------------------------------------------------- */

struct conditions {
	bool streams;    /* the streams schema's state table exists */
	bool own_tables; /* the outbox tables are ours */
};

static bool ends_with(const char *text, const char *tail)
{
	size_t length = strlen(text), tail_length = strlen(tail);

	return length >= tail_length && strcmp(text + length - tail_length, tail) == 0;
}

static bool applies(const struct sql_entry *entry, const struct conditions *conditions)
{
	if (ends_with(entry->kind, "-if-streams"))
		return conditions->streams;
	if (ends_with(entry->kind, "-unless-streams"))
		return !conditions->streams;
	if (ends_with(entry->kind, "-if-own-tables"))
		return conditions->own_tables;
	return true;
}

static int install_part(struct qret_ctx *ctx, const struct part *part)
{
	struct template_names *names = template_names_new(&ctx->options);
	struct conditions conditions = { .own_tables =
		                                 !template_names_foreign_tables(&ctx->options) };
	struct parameters parameters = { 0 };
	int64_t streams = 0;
	int rc;

	if (names == NULL)
		return context_fail(ctx, QRET_ERR_NOMEM, NULL, "out of memory");
	parameter_text(&parameters, option_text(&ctx->options, OPTION_STREAMS_SCHEMA));
	rc = call_number(ctx, context_statement(ctx, STATEMENT_INSTALL_HAS_STREAMS), &parameters,
	                 &streams);
	conditions.streams = streams != 0;
	template_names_set_part(names, option_text(&ctx->options, part->schema));
	for (const struct sql_entry *entry = part->entries; rc == QRET_DONE && entry->kind != NULL;
	     entry++) {
		if (applies(entry, &conditions))
			rc = install_entry(ctx, part, entry, template_names_list(names));
	}
	template_names_free(names);
	return rc;
}

static void log_installed(struct qret_ctx *ctx, const struct part *part)
{
	struct line line;

	if (!log_wants(&ctx->log, LOG_INSTALLED))
		return;
	log_begin(&line, LOG_INSTALLED);
	line_text(&line, "part", part->name);
	line_text(&line, "schema", option_text(&ctx->options, part->schema));
	line_number(&line, "version", SCHEMA_VERSION);
	log_end(&ctx->log, LOG_INSTALLED, &line);
}

/*
 * Puts lane 0 to rest; an install may have left the session with settings of its own, so it is
 * not reused.
 */
static void close_call(struct qret_ctx *ctx, bool reuse)
{
	struct session *session = &ctx->lanes[0].session;

	if (reuse || session->borrowed)
		session_rest(session);
	else
		session_abandon(session);
	ctx->facts.known = false;
}

int qret_schema_install(struct qret_ctx *ctx, const char *part_name)
{
	const struct part *part = find_part(part_name);
	int rc = context_enter_idle(ctx);

	if (rc != QRET_DONE)
		return rc;
	if (part == NULL)
		return context_fail(ctx, QRET_ERR_ARGUMENT, "the parts are broker, log and event",
		                    "there is no such part");
	if (ctx->gate.held)
		return context_fail(ctx, QRET_ERR_STATE, "call qret_gate_release first",
		                    "the gate is held");
	rc = context_open(ctx);
	if (rc != QRET_DONE)
		return rc;
	rc = install_part(ctx, part);
	close_call(ctx, false);
	if (rc == QRET_DONE)
		log_installed(ctx, part);
	return rc;
}

int qret_schema_version(struct qret_ctx *ctx, const char *part_name, int32_t *ret_version)
{
	const struct part *part = find_part(part_name);
	struct parameters parameters = { 0 };
	int64_t version = 0;
	int rc = context_enter_idle(ctx);

	if (rc != QRET_DONE)
		return rc;
	if (part == NULL || ret_version == NULL)
		return context_fail(ctx, QRET_ERR_ARGUMENT, "the parts are broker, log and event",
		                    "there is no such part, or ret_version is NULL");
	rc = context_open(ctx);
	if (rc != QRET_DONE)
		return rc;
	parameter_text(&parameters, part->name);
	rc = call_number(ctx,
	                 part->schema == OPTION_EVENT_SCHEMA ? ctx->statements.event_version
	                                                     : ctx->statements.log_version,
	                 &parameters, &version);
	/* No record, no part: the ping has reached the server all the same. */
	if (rc == QRET_ERR_SCHEMA) {
		error_clear(&ctx->error);
		rc = QRET_DONE;
	}
	close_call(ctx, true);
	if (rc == QRET_DONE)
		*ret_version = (int32_t)version;
	return rc;
}
