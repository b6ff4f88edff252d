/* SPDX-License-Identifier: MIT */
/*
 * The parts of the schema: which entries of its list a part needs here, and which version is
 * installed. How an entry goes in is in install.c.
 */
#include "schema.h"

#include <string.h>

#include "context.h"
#include "install.h"
#include "template.h"

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
	rc = install_number(ctx, context_statement(ctx, STATEMENT_INSTALL_HAS_STREAMS), &parameters,
	                    &streams);
	conditions.streams = streams != 0;
	template_names_set_part(names, option_text(&ctx->options, part->schema));
	for (const struct sql_entry *entry = part->entries; rc == QRET_DONE && entry->kind != NULL;
	     entry++) {
		if (applies(entry, &conditions))
			rc = install_entry(ctx, part->schema, entry, template_names_list(names));
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
	rc = install_number(ctx,
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
