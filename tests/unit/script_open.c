/* SPDX-License-Identifier: MIT */
/* Opening, closing and the modes of connections of the scripted libpq; conninfo. */
#include <stdio.h>

#include "script_libpq.h"

PGconn *PQconnectStartParams(const char *const *keywords, const char *const *values,
                             int expand_dbname)
{
	struct pg_conn *conn;

	REQUIRE(expand_dbname == 0, "a database name would be expanded");
	if (script_refused(NULL))
		return NULL;
	conn = script_connection_new();
	conn->behaviour = script_behaviour(conn->number);
	for (; *keywords != NULL; keywords++, values++) {
		snprintf(conn->keywords[conn->keyword_count][0], sizeof(conn->keywords[0][0]), "%s",
		         *keywords);
		snprintf(conn->keywords[conn->keyword_count++][1], sizeof(conn->keywords[0][1]),
		         "%s", *values);
	}
	return conn;
}

bool script_is_deaf(const struct pg_conn *conn)
{
	return conn->behaviour != NULL && strcmp(conn->behaviour, "deaf") == 0;
}

PostgresPollingStatusType PQconnectPoll(PGconn *conn)
{
	script_enter(conn);
	if (script_refused(conn) || script_notice_death(conn))
		return PGRES_POLLING_FAILED;
	if (script_is_deaf(conn))
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
	script_free_queue(conn);
}

ConnStatusType PQstatus(const PGconn *conn)
{
	script_enter(conn);
	if (conn->noticed)
		return CONNECTION_BAD;
	return conn->stage == OPENED ? CONNECTION_OK : CONNECTION_STARTED;
}

int PQsocket(const PGconn *conn)
{
	script_enter(conn);
	return conn->noticed ? -1 : SCRIPT_FD_BASE + conn->number;
}

char *PQerrorMessage(const PGconn *conn)
{
	script_enter(conn);
	return (char *)(uintptr_t)conn->message;
}

char *PQhost(const PGconn *conn)
{
	script_enter(conn);
	return (char *)(uintptr_t)script_keyword(conn->number, "host");
}

int PQconnectionNeedsPassword(const PGconn *conn)
{
	script_enter(conn);
	return 0;
}

PGVerbosity PQsetErrorVerbosity(PGconn *conn, PGVerbosity verbosity)
{
	script_enter(conn);
	return verbosity;
}

PQnoticeReceiver PQsetNoticeReceiver(PGconn *conn, PQnoticeReceiver receiver, void *data)
{
	PQnoticeReceiver before = conn->receiver;

	script_enter(conn);
	REQUIRE(!conn->host_owned, "the notice hooks of the host's connection were changed");
	conn->receiver = receiver;
	conn->receiver_data = data;
	return before;
}

PGTransactionStatusType PQtransactionStatus(const PGconn *conn)
{
	script_enter(conn);
	return conn->noticed ? PQTRANS_UNKNOWN : conn->said != NULL ? PQTRANS_ACTIVE : PQTRANS_IDLE;
}

PGpipelineStatus PQpipelineStatus(const PGconn *conn)
{
	script_enter(conn);
	return conn->pipeline ? PQ_PIPELINE_ON : PQ_PIPELINE_OFF;
}

int PQenterPipelineMode(PGconn *conn)
{
	script_enter(conn);
	if (script_refused(conn) || conn->noticed)
		return 0;
	REQUIRE(conn->said == NULL && conn->unsent == NULL,
	        "pipeline mode entered on a busy connection");
	conn->pipeline = true;
	return 1;
}

int PQexitPipelineMode(PGconn *conn)
{
	script_enter(conn);
	if (conn->said != NULL || conn->unsent != NULL)
		return 0;
	conn->pipeline = false;
	return 1;
}

int PQsetnonblocking(PGconn *conn, int nonblocking)
{
	script_enter(conn);
	if (script_refused(conn) || conn->noticed)
		return -1;
	conn->nonblocking = nonblocking != 0;
	return 0;
}

int PQisnonblocking(const PGconn *conn)
{
	script_enter(conn);
	return conn->nonblocking;
}

/* ---- conninfo ---------------------------------------------------------------------------------- */

static const char *const option_names[] = { "service",
	                                    "user",
	                                    "password",
	                                    "passfile",
	                                    "connect_timeout",
	                                    "dbname",
	                                    "host",
	                                    "hostaddr",
	                                    "port",
	                                    "client_encoding",
	                                    "fallback_application_name",
	                                    "keepalives_idle",
	                                    "keepalives_interval",
	                                    "keepalives_count",
	                                    "tcp_user_timeout",
	                                    "target_session_attrs" };

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
	return script_refused(NULL) ? NULL : options_new();
}

/* "name=value name=value", no quotes. */
PQconninfoOption *PQconninfoParse(const char *conninfo, char **ret_message)
{
	PQconninfoOption *options;

	*ret_message = NULL;
	if (script_refused(NULL)) {
		*ret_message = strdup("out of memory\n");
		return NULL;
	}
	options = options_new();
	for (; *conninfo != '\0'; conninfo += strspn(conninfo, " ")) {
		size_t name = strcspn(conninfo, "="), value = strcspn(conninfo + name + 1, " ");

		for (size_t i = 0; i < OPTION_NAMES; i++) {
			if (strlen(option_names[i]) == name &&
			    strncmp(option_names[i], conninfo, name) == 0) {
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
