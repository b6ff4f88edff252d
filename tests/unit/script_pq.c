/* SPDX-License-Identifier: MIT */
/* libpq's face: connections and results, strict about their lives. */
#include "script_pq.h"
#include "unit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libpq-fe.h>

/* What the script keeps is none of the library's memory. */
void *__real_calloc(size_t count, size_t size);
void  __real_free(void *block);

#define CONNECTIONS_MOST 64
#define CELLS_MOST 24 /* columns of a row */

struct cell {
	char value[64];
	int  length; /* -1: NULL */
	Oid  type;
};

struct pg_result {
	ExecStatusType    status;
	int               rows, columns, width;
	struct cell      *cells;
	char              sqlstate[6], severity[8], message[256];
	bool              cleared;
	struct pg_result *older; /* all that were ever made */
};

/* What libpq has to say next on a connection. */
struct utterance {
	struct pg_result *result; /* NULL: the end of a statement */
	int64_t           at_us;
	bool              arrived;
	struct utterance *next;
};

#define PREPARED_MOST 256

/* A statement with a name. */
struct named {
	char        name[24], *text;
	int         count;
	Oid         types[16];
	bool        known; /* by the server */
};

/* What waits to be flushed. */
struct outgoing {
	char            *text; /* NULL: a sync, or one with a name */
	struct named    *named;
	bool             prepares;
	long             queued;
	char            *parameters;
	struct outgoing *next;
};

struct pg_conn {
	int               number;
	enum { OPENING, OPENED } stage;
	int               polls;
	const char       *behaviour;
	char              keywords[48][2][256];
	int               keyword_count;
	struct named      named[PREPARED_MOST];
	int               named_count;
	long              group_call;
	bool              host_owned, finished, pipeline, nonblocking;
	bool              dead, noticed, told, silent, chatter, aborted;
	char              message[256];
	struct utterance *said, **said_end;
	struct outgoing  *unsent, **unsent_end;
	PQnoticeReceiver  receiver;
	void             *receiver_data;
};

struct script_knobs script_knobs;

static struct pg_conn *connections[CONNECTIONS_MOST];
static int connection_count;
static struct pg_result *results;
static const char *const *behaviours;
static size_t behaviour_count;
static long calls;
static bool died;

/* ---- Script life ------------------------------------------------------------------------------- */

static void free_outgoing(struct outgoing *outgoing)
{
	__real_free(outgoing->text);
	__real_free(outgoing->parameters);
	__real_free(outgoing);
}

static void free_queue(struct pg_conn *conn)
{
	while (conn->named_count > 0)
		__real_free(conn->named[--conn->named_count].text);
	while (conn->said != NULL) {
		struct utterance *next = conn->said->next;

		if (conn->said->result != NULL)
			conn->said->result->cleared = true;
		__real_free(conn->said);
		conn->said = next;
	}
	conn->said_end = &conn->said;
	while (conn->unsent != NULL) {
		struct outgoing *next = conn->unsent->next;

		free_outgoing(conn->unsent);
		conn->unsent = next;
	}
	conn->unsent_end = &conn->unsent;
}

static void forget(void)
{
	for (int i = 0; i < connection_count; i++) {
		free_queue(connections[i]);
		__real_free(connections[i]);
	}
	connection_count = 0;
	while (results != NULL) {
		struct pg_result *older = results->older;

		__real_free(results->cells);
		__real_free(results);
		results = older;
	}
}

void script_begin(void)
{
	forget();
	memset(&script_knobs, 0, sizeof(script_knobs));
	behaviours = NULL;
	behaviour_count = 0;
	calls = 0;
	died = false;
	script_clock_reset();
	script_server_reset();
}

void script_end(void)
{
	for (int i = 0; i < connection_count; i++)
		REQUIRE(connections[i]->finished || connections[i]->host_owned, "connection %d was not finished", i + 1);
	for (int i = 0; i < connection_count; i++)
		free_queue(connections[i]);
	for (struct pg_result *result = results; result != NULL; result = result->older)
		REQUIRE(result->cleared, "a result (%s) was not cleared", result->message);
	script_server_check();
	forget();
}

void script_connects(const char *const *list, size_t count)
{
	behaviours = list;
	behaviour_count = count;
}

long script_calls(void)
{
	return calls;
}

bool script_died(void)
{
	return died;
}

int script_opened(void)
{
	return connection_count;
}

int script_open(void)
{
	int open = 0;

	for (int i = 0; i < connection_count; i++)
		open += !connections[i]->finished && !connections[i]->host_owned;
	return open;
}

const char *script_keyword(int connection, const char *keyword)
{
	struct pg_conn *conn = connections[connection - 1];

	for (int i = 0; i < conn->keyword_count; i++) {
		if (strcmp(conn->keywords[i][0], keyword) == 0)
			return conn->keywords[i][1];
	}
	return "";
}

static void die(struct pg_conn *conn)
{
	conn->dead = true;
	for (struct utterance **at = &conn->said; *at != NULL;) {
		struct utterance *lost = *at;

		if (lost->arrived) {
			at = &lost->next;
			continue;
		}
		*at = lost->next;
		if (lost->result != NULL)
			lost->result->cleared = true;
		__real_free(lost);
	}
	for (conn->said_end = &conn->said; *conn->said_end != NULL;)
		conn->said_end = &(*conn->said_end)->next;
}

static bool notice_death(struct pg_conn *conn)
{
	if (conn->dead && !conn->noticed) {
		conn->noticed = true;
		snprintf(conn->message, sizeof(conn->message), "server closed the connection unexpectedly\n");
	}
	return conn->dead;
}

/* Every call on a connection passes here. */
static void enter(const PGconn *used)
{
	struct pg_conn *conn = (struct pg_conn *)(uintptr_t)used;

	REQUIRE(conn != NULL && !conn->finished, "libpq was called on a connection that is NULL or finished");
	script_tick();
	calls++;
	if (script_knobs.die_at > 0 && (script_knobs.die_connection == 0 || script_knobs.die_connection == conn->number) &&
	    --script_knobs.die_at == 0) {
		died = true;
		die(conn);
	}
	if (script_knobs.stop_at > 0 && --script_knobs.stop_at == 0) {
		died = true;
		script_knobs.stop();
	}
}

/* For calls that can fail by themselves. */
static bool refused(struct pg_conn *conn)
{
	if (script_knobs.refuse_at == 0 || --script_knobs.refuse_at > 0)
		return false;
	died = true;
	if (conn != NULL)
		snprintf(conn->message, sizeof(conn->message), "out of memory\n");
	return true;
}

/* ---- Results ----------------------------------------------------------------------------------- */

static struct pg_result *result_new(ExecStatusType status)
{
	struct pg_result *result = __real_calloc(1, sizeof(*result));

	result->status = status;
	result->older = results;
	results = result;
	return result;
}

static void put(struct cell *cell, Oid type, uint64_t value, int bytes)
{
	cell->type = type;
	cell->length = bytes;
	for (int i = bytes - 1; i >= 0; i--, value >>= 8)
		cell->value[i] = (char)value;
}

static void encode(struct cell *cell, const char *word, size_t length)
{
	if (word[0] == '-' && length == 1)
		cell->length = -1;
	else if (word[0] == 't' || word[0] == 'f')
		put(cell, 16, word[0] == 't', 1);
	else if (word[0] == '@')
		put(cell, 1184, (uint64_t)(strtoll(word + 1, NULL, 10) - 946684800000000), 8);
	else if (word[0] == '#')
		put(cell, 2950, strtoull(word + 1, NULL, 10), 16);
	else if (word[0] == '\'')
		cell->length = snprintf(cell->value, sizeof(cell->value), "%.*s", (int)length - 1, word + 1);
	else
		put(cell, 20, (uint64_t)strtoll(word, NULL, 10), 8);
}

static struct pg_result *result_of_rows(const char *answer)
{
	struct pg_result *result = result_new(PGRES_TUPLES_OK);
	int rows = 1, width = 1, at = 0;

	for (const char *c = answer; *c != '\0'; c++)
		rows += *c == '/';
	for (const char *c = answer; *c != '\0' && *c != '/'; c++)
		width += *c == ' ';
	result->width = width < CELLS_MOST ? width : CELLS_MOST;
	result->cells = __real_calloc((size_t)(rows * result->width), sizeof(struct cell));
	while (*answer != '\0') {
		size_t length = strcspn(answer, " /");

		REQUIRE(at < result->width, "a row of the answer is longer than the first");
		if (length > 0) {
			encode(&result->cells[result->rows * result->width + at++], answer, length);
			result->columns = at > result->columns ? at : result->columns;
		}
		answer += length;
		if (*answer == '/' || *answer == '\0') {
			result->rows += at > 0;
			at = 0;
		}
		answer += *answer != '\0';
	}
	if (result->columns == 0)
		result->columns = CELLS_MOST;
	return result;
}

static struct pg_result *result_of_error(const char *severity, const char *sqlstate, const char *message)
{
	struct pg_result *result = result_new(PGRES_FATAL_ERROR);

	snprintf(result->severity, sizeof(result->severity), "%s", severity);
	snprintf(result->sqlstate, sizeof(result->sqlstate), "%.5s", sqlstate);
	snprintf(result->message, sizeof(result->message), "%s", message);
	return result;
}

static const struct pg_result *alive(const PGresult *result)
{
	REQUIRE(result != NULL && !result->cleared, "a result was used after PQclear");
	return result;
}

void PQclear(PGresult *result)
{
	if (result == NULL)
		return;
	REQUIRE(!result->cleared, "a result was cleared twice");
	result->cleared = true;
}

ExecStatusType PQresultStatus(const PGresult *result)
{
	return result == NULL ? PGRES_FATAL_ERROR : alive(result)->status;
}

char *PQresultErrorMessage(const PGresult *result)
{
	return result == NULL ? (char *)(uintptr_t)"" : (char *)(uintptr_t)alive(result)->message;
}

char *PQresultErrorField(const PGresult *result, int field)
{
	const struct pg_result *own = alive(result);

	switch (field) {
	case PG_DIAG_SQLSTATE:
		return own->sqlstate[0] == '\0' ? NULL : (char *)(uintptr_t)own->sqlstate;
	case PG_DIAG_MESSAGE_PRIMARY:
		return own->sqlstate[0] == '\0' ? NULL : (char *)(uintptr_t)own->message;
	case PG_DIAG_SEVERITY_NONLOCALIZED:
		return (char *)(uintptr_t)own->severity;
	default:
		return NULL;
	}
}

int PQntuples(const PGresult *result)
{
	return alive(result)->rows;
}

int PQnfields(const PGresult *result)
{
	return alive(result)->columns;
}

static const struct cell *cell_of(const PGresult *result, int row, int column)
{
	REQUIRE(row >= 0 && row < alive(result)->rows && column >= 0 && column < result->columns,
	              "row %d, column %d of a result of %d, %d", row, column, result->rows, result->columns);
	return &result->cells[row * result->width + column];
}

Oid PQftype(const PGresult *result, int column)
{
	return cell_of(result, 0, column)->type;
}

int PQgetisnull(const PGresult *result, int row, int column)
{
	return cell_of(result, row, column)->length < 0;
}

int PQgetlength(const PGresult *result, int row, int column)
{
	int length = cell_of(result, row, column)->length;

	return length < 0 ? 0 : length;
}

char *PQgetvalue(const PGresult *result, int row, int column)
{
	return (char *)(uintptr_t)cell_of(result, row, column)->value;
}

/* ---- Opening ----------------------------------------------------------------------------------- */

static struct pg_conn *connection_new(void)
{
	struct pg_conn *conn = __real_calloc(1, sizeof(*conn));

	REQUIRE(connection_count < CONNECTIONS_MOST, "too many connections");
	connections[connection_count++] = conn;
	conn->number = connection_count;
	conn->said_end = &conn->said;
	conn->unsent_end = &conn->unsent;
	return conn;
}

struct pg_conn *script_host_connection(void)
{
	struct pg_conn *conn = connection_new();

	conn->host_owned = true;
	conn->stage = OPENED;
	return conn;
}

PGconn *PQconnectStartParams(const char *const *keywords, const char *const *values, int expand_dbname)
{
	struct pg_conn *conn;

	REQUIRE(expand_dbname == 0, "a database name would be expanded");
	if (refused(NULL))
		return NULL;
	conn = connection_new();
	if ((size_t)conn->number <= behaviour_count)
		conn->behaviour = behaviours[conn->number - 1];
	for (; *keywords != NULL; keywords++, values++) {
		snprintf(conn->keywords[conn->keyword_count][0], sizeof(conn->keywords[0][0]), "%s", *keywords);
		snprintf(conn->keywords[conn->keyword_count++][1], sizeof(conn->keywords[0][1]), "%s", *values);
	}
	return conn;
}

static bool is_deaf(const struct pg_conn *conn)
{
	return conn->behaviour != NULL && strcmp(conn->behaviour, "deaf") == 0;
}

PostgresPollingStatusType PQconnectPoll(PGconn *conn)
{
	enter(conn);
	if (refused(conn) || notice_death(conn))
		return PGRES_POLLING_FAILED;
	if (is_deaf(conn))
		return PGRES_POLLING_READING;
	if (conn->behaviour != NULL) {
		snprintf(conn->message, sizeof(conn->message), "%s\n", conn->behaviour);
		return PGRES_POLLING_FAILED;
	}
	conn->polls++;
	if (conn->polls < 3)
		return conn->polls == 1 ? PGRES_POLLING_READING : PGRES_POLLING_WRITING;
	conn->stage = OPENED;
	return PGRES_POLLING_OK;
}

void PQfinish(PGconn *conn)
{
	if (conn == NULL)
		return;
	REQUIRE(!conn->finished, "a connection was finished twice");
	REQUIRE(!conn->host_owned, "the host's connection was finished");
	conn->finished = true;
	free_queue(conn);
}

ConnStatusType PQstatus(const PGconn *conn)
{
	enter(conn);
	if (conn->noticed)
		return CONNECTION_BAD;
	return conn->stage == OPENED ? CONNECTION_OK : CONNECTION_STARTED;
}

int PQsocket(const PGconn *conn)
{
	enter(conn);
	return conn->noticed ? -1 : SCRIPT_FD_BASE + conn->number;
}

char *PQerrorMessage(const PGconn *conn)
{
	enter(conn);
	return (char *)(uintptr_t)conn->message;
}

char *PQhost(const PGconn *conn)
{
	enter(conn);
	return (char *)(uintptr_t)script_keyword(conn->number, "host");
}

int PQconnectionNeedsPassword(const PGconn *conn)
{
	enter(conn);
	return 0;
}

PGVerbosity PQsetErrorVerbosity(PGconn *conn, PGVerbosity verbosity)
{
	enter(conn);
	return verbosity;
}

PQnoticeReceiver PQsetNoticeReceiver(PGconn *conn, PQnoticeReceiver receiver, void *data)
{
	PQnoticeReceiver before = conn->receiver;

	enter(conn);
	REQUIRE(!conn->host_owned, "the notice hooks of the host's connection were changed");
	conn->receiver = receiver;
	conn->receiver_data = data;
	return before;
}

PGTransactionStatusType PQtransactionStatus(const PGconn *conn)
{
	enter(conn);
	return conn->noticed ? PQTRANS_UNKNOWN : conn->said != NULL ? PQTRANS_ACTIVE : PQTRANS_IDLE;
}

PGpipelineStatus PQpipelineStatus(const PGconn *conn)
{
	enter(conn);
	return conn->pipeline ? PQ_PIPELINE_ON : PQ_PIPELINE_OFF;
}

int PQenterPipelineMode(PGconn *conn)
{
	enter(conn);
	if (refused(conn) || conn->noticed)
		return 0;
	REQUIRE(conn->said == NULL && conn->unsent == NULL, "pipeline mode entered on a busy connection");
	conn->pipeline = true;
	return 1;
}

int PQexitPipelineMode(PGconn *conn)
{
	enter(conn);
	if (conn->said != NULL || conn->unsent != NULL)
		return 0;
	conn->pipeline = false;
	return 1;
}

int PQsetnonblocking(PGconn *conn, int nonblocking)
{
	enter(conn);
	if (refused(conn) || conn->noticed)
		return -1;
	conn->nonblocking = nonblocking != 0;
	return 0;
}

int PQisnonblocking(const PGconn *conn)
{
	enter(conn);
	return conn->nonblocking;
}

/* ---- Sending ----------------------------------------------------------------------------------- */

static char decoded[32768];

static char *copy_text(const char *text)
{
	return strcpy(__real_calloc(1, strlen(text) + 1), text);
}

static struct outgoing *queue_outgoing(struct pg_conn *conn)
{
	struct outgoing *outgoing = __real_calloc(1, sizeof(*outgoing));

	/* A group begins as one: its first call counts for all of it. */
	outgoing->queued = conn->group_call = conn->group_call > 0 ? conn->group_call : calls;
	*conn->unsent_end = outgoing;
	conn->unsent_end = &outgoing->next;
	return outgoing;
}

int PQsendQueryParams(PGconn *conn, const char *text, int count, const Oid *types, const char *const *values,
                      const int *lengths, const int *formats, int result_format)
{
	struct outgoing *outgoing;

	enter(conn);
	if (refused(conn) || conn->noticed)
		return 0;
	REQUIRE(conn->pipeline && conn->nonblocking, "a statement was sent outside of pipeline mode");
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

	enter(conn);
	if (refused(conn) || conn->noticed)
		return 0;
	REQUIRE(conn->pipeline && !conn->host_owned, "a statement was prepared on the host's connection");
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

int PQsendQueryPrepared(PGconn *conn, const char *name, int count, const char *const *values, const int *lengths, const int *formats,
                        int result_format)
{
	struct outgoing *outgoing;
	struct named *named = conn->named;

	enter(conn);
	if (refused(conn) || conn->noticed)
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
	enter(conn);
	if (refused(conn) || conn->noticed)
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
	utterance->at_us = delay_ms == SCRIPT_NEVER ? INT64_MAX : script_now_us() + (int64_t)delay_ms * 1000;
	/* Answers come in order: never before the one in front. */
	for (struct utterance *front = conn->said; front != NULL; front = front->next)
		utterance->at_us = front->at_us > utterance->at_us ? front->at_us : utterance->at_us;
	*conn->said_end = utterance;
	conn->said_end = &utterance->next;
}

static void tell_notice(struct pg_conn *conn)
{
	struct pg_result *notice = result_of_error("WARNING", "01000", "careful,\nserver speaking");

	REQUIRE(conn->receiver != NULL, "a notice would go to stderr");
	conn->receiver(conn->receiver_data, notice);
	notice->cleared = true;
}

/* The server takes one statement. */
static void serve(struct pg_conn *conn, const struct outgoing *outgoing)
{
	const char *text = outgoing->named != NULL ? outgoing->named->text : outgoing->text, *answer;
	struct script_call call = { conn->number, script_statement_name(text), outgoing->parameters, text, outgoing->queued, 0, 0 };
	char sqlstate[6];

	if (conn->dead)
		return;
	if (conn->aborted) {
		say(conn, result_new(PGRES_PIPELINE_ABORTED), 0);
		say(conn, NULL, 0);
		return;
	}
	if (outgoing->prepares) {
		outgoing->named->known = true;
		say(conn, result_new(PGRES_COMMAND_OK), 0);
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
		die(conn);
		return;
	}
	if (strncmp(answer, "ERROR ", 6) != 0 && strncmp(answer, "FATAL ", 6) != 0) {
		say(conn, result_of_rows(answer), call.delay_ms);
		say(conn, NULL, call.delay_ms);
		return;
	}
	snprintf(sqlstate, sizeof(sqlstate), "%.5s", answer + 6);
	for (int i = call.flags & SCRIPT_TWICE ? 2 : 1; i > 0; i--)
		say(conn, result_of_error(answer[0] == 'E' ? "ERROR" : "FATAL", sqlstate, answer + 12), call.delay_ms);
	say(conn, NULL, call.delay_ms);
	conn->aborted = true;
	if (answer[0] == 'F') {
		/* What was said arrives, and then nothing. */
		for (struct utterance *at = conn->said; at != NULL; at = at->next)
			at->arrived = true;
		die(conn);
	}
}

int PQflush(PGconn *conn)
{
	enter(conn);
	if (refused(conn))
		return -1;
	if (conn->dead && script_knobs.die_late && !conn->noticed)
		return 0;
	if (notice_death(conn))
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
			say(conn, result_new(PGRES_PIPELINE_SYNC), 0);
			conn->aborted = false;
		}
		free_outgoing(outgoing);
	}
	conn->unsent_end = &conn->unsent;
	return 0;
}

/* ---- Receiving --------------------------------------------------------------------------------- */

int PQconsumeInput(PGconn *conn)
{
	enter(conn);
	if (refused(conn) || notice_death(conn))
		return 0;
	for (struct utterance *at = conn->said; at != NULL && at->at_us <= script_now_us(); at = at->next)
		at->arrived = true;
	return 1;
}

int PQisBusy(PGconn *conn)
{
	enter(conn);
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

	enter(conn);
	if (refused(conn))
		return result_of_error("", "", "out of memory\n");
	if (conn->silent)
		return NULL;
	if (conn->chatter)
		return result_of_error("ERROR", "XX000", "and again");
	first = conn->said;
	if (first == NULL || (conn->noticed && !first->arrived)) {
		if (!conn->dead || conn->told)
			return NULL;
		notice_death(conn);
		conn->told = true;
		return result_of_error("", "", conn->message);
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
	int at = fd - SCRIPT_FD_BASE - 1;

	REQUIRE(at >= 0 && at < connection_count && !connections[at]->finished, "a descriptor that is closed was polled");
	return connections[at];
}

bool script_fd_ready(int fd, bool for_write)
{
	const struct pg_conn *conn = connection_of(fd);

	if (conn->dead)
		return true;
	if (conn->stage == OPENING)
		return !is_deaf(conn);
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

/* ---- conninfo ---------------------------------------------------------------------------------- */

static const char *const option_names[] = { "service", "user", "password", "passfile", "connect_timeout", "dbname", "host", "hostaddr",
	                                    "port", "client_encoding", "fallback_application_name", "keepalives_idle",
	                                    "keepalives_interval", "keepalives_count", "tcp_user_timeout", "target_session_attrs" };

#define OPTION_NAMES (sizeof(option_names) / sizeof(option_names[0]))

static PQconninfoOption *options_new(void)
{
	PQconninfoOption *options = __real_calloc(OPTION_NAMES + 1, sizeof(*options));

	for (size_t i = 0; i < OPTION_NAMES; i++)
		options[i].keyword = (char *)(uintptr_t)option_names[i];
	return options;
}

PQconninfoOption *PQconndefaults(void)
{
	return refused(NULL) ? NULL : options_new();
}

/* "name=value name=value", no quotes. */
PQconninfoOption *PQconninfoParse(const char *conninfo, char **ret_message)
{
	PQconninfoOption *options = options_new();

	*ret_message = NULL;
	for (; *conninfo != '\0'; conninfo += strspn(conninfo, " ")) {
		size_t name = strcspn(conninfo, "="), value = strcspn(conninfo + name + 1, " ");

		for (size_t i = 0; i < OPTION_NAMES; i++) {
			if (strlen(option_names[i]) == name && strncmp(option_names[i], conninfo, name) == 0) {
				options[i].val = __real_calloc(1, value + 1);
				memcpy(options[i].val, conninfo + name + 1, value);
			}
		}
		conninfo += name + 1 + value;
	}
	return options;
}

void PQconninfoFree(PQconninfoOption *options)
{
	if (options == NULL)
		return;
	/* The library may have put values of its own in. */
	for (size_t i = 0; i < OPTION_NAMES; i++)
		free(options[i].val);
	__real_free(options);
}

void PQfreemem(void *block)
{
	free(block);
}
