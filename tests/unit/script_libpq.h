/* SPDX-License-Identifier: MIT */
/* What the files of the scripted libpq share. Tests include script_pq.h. */
#ifndef QRET_TESTS_SCRIPT_LIBPQ_H
#define QRET_TESTS_SCRIPT_LIBPQ_H

#include <stdlib.h>

#include <libpq-fe.h>

#include "script_pq.h"
#include "unit.h"

/* What the script keeps is none of the library's memory. */
void *__real_calloc(size_t count, size_t size);
void __real_free(void *block);

#define CONNECTIONS_MOST 64
#define CELLS_MOST       24 /* columns of a row */

struct cell {
	char value[64];
	int length; /* -1: NULL */
	Oid type;
};

struct pg_result {
	ExecStatusType status;
	int rows, columns, width;
	struct cell *cells;
	char sqlstate[6], severity[8], message[256];
	bool cleared;
	struct pg_result *older; /* all that were ever made */
};

/* What libpq has to say next on a connection. */
struct utterance {
	struct pg_result *result; /* NULL: the end of a statement */
	int64_t at_us;
	bool arrived;
	struct utterance *next;
};

#define PREPARED_MOST 256

/* A statement with a name. */
struct named {
	char name[24], *text;
	int count;
	Oid types[16];
	bool known; /* by the server */
};

/* What waits to be flushed. */
struct outgoing {
	char *text; /* NULL: a sync, or one with a name */
	struct named *named;
	bool prepares;
	long queued;
	char *parameters;
	struct outgoing *next;
};

struct pg_conn {
	int number;
	enum { OPENING, OPENED } stage;
	int polls;
	const char *behaviour;
	char keywords[48][2][256];
	int keyword_count;
	struct named named[PREPARED_MOST];
	int named_count;
	long group_call;
	bool host_owned, finished, pipeline, nonblocking;
	bool dead, noticed, told, silent, chatter, aborted;
	char message[256];
	struct utterance *said, **said_end;
	struct outgoing *unsent, **unsent_end;
	PQnoticeReceiver receiver;
	void *receiver_data;
};

/* Every call on a connection passes here. */
void script_enter(const PGconn *used);

/* For calls that can fail by themselves: whether this one does. */
bool script_refused(struct pg_conn *conn);

void script_die(struct pg_conn *conn);

/* Whether the connection is dead; from here on libpq knows. */
bool script_notice_death(struct pg_conn *conn);

struct pg_conn *script_connection(int number);
struct pg_conn *script_connection_new(void);
const char *script_behaviour(int number);
void script_free_queue(struct pg_conn *conn);
void script_free_outgoing(struct outgoing *outgoing);
bool script_is_deaf(const struct pg_conn *conn);

/* Results; all of them are freed by script_free_results. */
struct pg_result *script_result(ExecStatusType status);
struct pg_result *script_result_of_rows(const char *answer);
struct pg_result *script_result_of_error(const char *severity, const char *sqlstate,
                                         const char *message);
void script_free_results(void);
void script_check_results(void);

#endif
