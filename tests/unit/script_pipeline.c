/* SPDX-License-Identifier: MIT */
/* Pipelines of the scripted libpq: what is sent, what the server makes of it, and what comes back when. */
#include <stdio.h>

#include "script_libpq.h"

static char decoded[32768];

static char *copy_text(const char *text)
{
	return strcpy(__real_calloc(1, strlen(text) + 1), text);
}

static struct outgoing *queue_outgoing(struct pg_conn *conn)
{
	struct outgoing *outgoing = __real_calloc(1, sizeof(*outgoing));

	/* A group begins as one: its first call counts for all of it. */
	outgoing->queued = conn->group_call = conn->group_call > 0 ? conn->group_call
	                                                           : script_calls();
	*conn->unsent_end = outgoing;
	conn->unsent_end = &outgoing->next;
	return outgoing;
}

int PQsendQueryParams(PGconn *conn, const char *text, int count, const Oid *types,
                      const char *const *values, const int *lengths, const int *formats,
                      int result_format)
{
	struct outgoing *outgoing;

	script_enter(conn);
	if (script_refused(conn) || conn->noticed)
		return 0;
	REQUIRE(conn->pipeline && conn->nonblocking,
	        "a statement was sent outside of pipeline mode");
	REQUIRE(result_format == 1, "an answer would come as text");
	for (int i = 0; i < count; i++)
		REQUIRE(formats[i] == 1, "a parameter travels as text");
	outgoing = queue_outgoing(conn);
	outgoing->text = copy_text(text);
	script_decode_parameters(decoded, sizeof(decoded), count, types, values, lengths);
	outgoing->parameters = copy_text(decoded);
	return 1;
}

int PQsendPrepare(PGconn *conn, const char *name, const char *text, int count, const Oid *types)
{
	struct outgoing *outgoing;
	struct named *named;

	script_enter(conn);
	if (script_refused(conn) || conn->noticed)
		return 0;
	REQUIRE(conn->pipeline && !conn->host_owned,
	        "a statement was prepared on the host's connection");
	REQUIRE(conn->named_count < PREPARED_MOST, "too many prepared statements");
	named = &conn->named[conn->named_count++];
	snprintf(named->name, sizeof(named->name), "%s", name);
	named->text = copy_text(text);
	named->count = count;
	for (int i = 0; i < count; i++)
		named->types[i] = types[i];
	outgoing = queue_outgoing(conn);
	outgoing->named = named;
	outgoing->prepares = true;
	return 1;
}

int PQsendQueryPrepared(PGconn *conn, const char *name, int count, const char *const *values,
                        const int *lengths, const int *formats, int result_format)
{
	struct outgoing *outgoing;
	struct named *named = conn->named;

	script_enter(conn);
	if (script_refused(conn) || conn->noticed)
		return 0;
	while (named < conn->named + conn->named_count && strcmp(named->name, name) != 0)
		named++;
	REQUIRE(named < conn->named + conn->named_count, "%s was never prepared here", name);
	REQUIRE(result_format == 1, "an answer would come as text");
	REQUIRE(count == named->count, "%s has %d parameters", name, named->count);
	for (int i = 0; i < count; i++)
		REQUIRE(formats[i] == 1, "a parameter travels as text");
	outgoing = queue_outgoing(conn);
	outgoing->named = named;
	script_decode_parameters(decoded, sizeof(decoded), count, named->types, values, lengths);
	outgoing->parameters = copy_text(decoded);
	return 1;
}

int PQpipelineSync(PGconn *conn)
{
	script_enter(conn);
	if (script_refused(conn) || conn->noticed)
		return 0;
	REQUIRE(conn->pipeline, "a sync outside of pipeline mode");
	queue_outgoing(conn);
	conn->group_call = 0;
	return 1;
}

static void say(struct pg_conn *conn, struct pg_result *result, int32_t delay_ms)
{
	struct utterance *utterance = __real_calloc(1, sizeof(*utterance));

	utterance->result = result;
	utterance->at_us = delay_ms == SCRIPT_NEVER ? INT64_MAX
	                                            : script_now_us() + (int64_t)delay_ms * 1000;
	/* Answers come in order: never before the one in front. */
	for (struct utterance *front = conn->said; front != NULL; front = front->next)
		utterance->at_us = front->at_us > utterance->at_us ? front->at_us
		                                                   : utterance->at_us;
	*conn->said_end = utterance;
	conn->said_end = &utterance->next;
}

static void tell_notice(struct pg_conn *conn)
{
	struct pg_result *notice = script_result_of_error("WARNING", "01000",
	                                                  "careful,\nserver speaking");

	REQUIRE(conn->receiver != NULL, "a notice would go to stderr");
	conn->receiver(conn->receiver_data, notice);
	notice->cleared = true;
}

/* The server takes one statement. */
static void serve(struct pg_conn *conn, const struct outgoing *outgoing)
{
	const char *text = outgoing->named != NULL ? outgoing->named->text : outgoing->text,
		   *answer;
	struct script_call call = { conn->number,
		                    script_statement_name(text),
		                    outgoing->parameters,
		                    text,
		                    outgoing->queued,
		                    0,
		                    0 };
	char sqlstate[6];

	if (conn->dead)
		return;
	if (conn->aborted) {
		say(conn, script_result(PGRES_PIPELINE_ABORTED), 0);
		say(conn, NULL, 0);
		return;
	}
	if (outgoing->prepares) {
		outgoing->named->known = true;
		say(conn, script_result(PGRES_COMMAND_OK), 0);
		say(conn, NULL, 0);
		return;
	}
	if (outgoing->named != NULL && !outgoing->named->known)
		answer = "ERROR 26000 no such prepared statement";
	else
		script_answer(&call, &answer);
	if (call.flags & SCRIPT_NOTICE)
		tell_notice(conn);
	conn->silent = conn->silent || (call.flags & SCRIPT_SILENT);
	conn->chatter = conn->chatter || (call.flags & SCRIPT_CHATTER);
	if (call.flags & SCRIPT_DIE) {
		script_die(conn);
		return;
	}
	if (strncmp(answer, "ERROR ", 6) != 0 && strncmp(answer, "FATAL ", 6) != 0) {
		say(conn, script_result_of_rows(answer), call.delay_ms);
		say(conn, NULL, call.delay_ms);
		return;
	}
	snprintf(sqlstate, sizeof(sqlstate), "%.5s", answer + 6);
	say(conn,
	    script_result_of_error(answer[0] == 'E' ? "ERROR" : "FATAL", sqlstate, answer + 12),
	    call.delay_ms);
	if (call.flags & SCRIPT_TWICE)
		say(conn, script_result_of_error("ERROR", "XX001", "an echo"), call.delay_ms);
	say(conn, NULL, call.delay_ms);
	conn->aborted = true;
	if (answer[0] == 'F') {
		/* What was said arrives, and then nothing. */
		for (struct utterance *at = conn->said; at != NULL; at = at->next)
			at->arrived = true;
		script_die(conn);
	}
}

int PQflush(PGconn *conn)
{
	script_enter(conn);
	if (script_refused(conn))
		return -1;
	if (conn->dead && script_knobs.die_late && !conn->noticed)
		return 0;
	if (script_notice_death(conn))
		return -1;
	if (conn->unsent != NULL && script_knobs.flush_stalls > 0) {
		script_knobs.flush_stalls--;
		return 1;
	}
	while (conn->unsent != NULL) {
		struct outgoing *outgoing = conn->unsent;

		conn->unsent = outgoing->next;
		if (outgoing->text != NULL || outgoing->named != NULL) {
			serve(conn, outgoing);
		} else if (!conn->dead) {
			say(conn, script_result(PGRES_PIPELINE_SYNC), 0);
			conn->aborted = false;
		}
		script_free_outgoing(outgoing);
	}
	conn->unsent_end = &conn->unsent;
	return 0;
}

/* ---- Receiving --------------------------------------------------------------------------------- */

int PQconsumeInput(PGconn *conn)
{
	script_enter(conn);
	if (script_refused(conn) || script_notice_death(conn))
		return 0;
	for (struct utterance *at = conn->said; at != NULL && at->at_us <= script_now_us();
	     at = at->next)
		at->arrived = true;
	return 1;
}

int PQisBusy(PGconn *conn)
{
	script_enter(conn);
	if (conn->silent || conn->chatter || conn->noticed)
		return 0;
	if (conn->said == NULL)
		return conn->dead || conn->unsent != NULL;
	return !conn->said->arrived;
}

PGresult *PQgetResult(PGconn *conn)
{
	struct utterance *first = conn->said;
	struct pg_result *result;

	script_enter(conn);
	if (script_refused(conn))
		return script_result_of_error("", "", "out of memory\n");
	if (conn->silent)
		return NULL;
	if (conn->chatter)
		return script_result_of_error("ERROR", "XX000", "and again");
	first = conn->said;
	if (first == NULL || (conn->noticed && !first->arrived)) {
		if (!conn->dead || conn->told)
			return NULL;
		script_notice_death(conn);
		conn->told = true;
		return script_result_of_error("", "", conn->message);
	}
	REQUIRE(first->arrived, "PQgetResult would block");
	conn->said = first->next;
	if (conn->said == NULL)
		conn->said_end = &conn->said;
	result = first->result;
	__real_free(first);
	return result;
}

/* ---- Descriptors, for the clock's poll ---------------------------------------------------------- */

static struct pg_conn *connection_of(int fd)
{
	struct pg_conn *conn = script_connection(fd - SCRIPT_FD_BASE);

	REQUIRE(conn != NULL && !conn->finished, "a descriptor that is closed was polled");
	return conn;
}

bool script_fd_ready(int fd, bool for_write)
{
	const struct pg_conn *conn = connection_of(fd);

	if (conn->dead)
		return true;
	if (conn->stage == OPENING)
		return !script_is_deaf(conn);
	if (for_write)
		return true;
	for (const struct utterance *at = conn->said; at != NULL; at = at->next) {
		if (!at->arrived && at->at_us <= script_now_us())
			return true;
	}
	return false;
}

int64_t script_fd_next_us(int fd)
{
	for (const struct utterance *at = connection_of(fd)->said; at != NULL; at = at->next) {
		if (!at->arrived)
			return at->at_us;
	}
	return INT64_MAX;
}
