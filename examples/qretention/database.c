/* SPDX-License-Identifier: MIT */
/* Calls of the outbox's SQL functions that the library has no call for, over libpq. */
#include "driver.h"

#include <libpq-fe.h>
#include <stdlib.h>
#include <string.h>

/* SQLSTATE classes or whole states, the longer first. */
static const struct {
	const char *prefix;
	int code;
	const char *hint;
} classes[] = {
	{ "42501", QRET_ERR_PRIVILEGE,
	  "run `qretention install event --grant-role ROLE` as the owner" },
	{ "42883", QRET_ERR_SCHEMA, "run `qretention install event`" },
	{ "42P01", QRET_ERR_SCHEMA, "run `qretention install event`" },
	{ "3F000", QRET_ERR_SCHEMA, "run `qretention install event`" },
	{ "22023", QRET_ERR_ARGUMENT, "" },
	{ "22P02", QRET_ERR_ARGUMENT, "" },
	{ "57014", QRET_ERR_TIMEOUT, "" },
	{ "08", QRET_ERR_CONNECTION, "" },
	{ "57P", QRET_ERR_CONNECTION, "" },
	{ "", QRET_ERR_SQL, "" },
};

static void copy_line(char *into, size_t size, const char *text)
{
	size_t length = strcspn(text, "\n");

	snprintf(into, size, "%.*s", (int)length, text);
}

static void connection_failed(const PGconn *connection, struct failure *ret_failure)
{
	ret_failure->code = QRET_ERR_CONNECTION;
	ret_failure->retryable = 1;
	copy_line(ret_failure->message, sizeof(ret_failure->message), PQerrorMessage(connection));
}

static void statement_failed(const PGconn *connection, const PGresult *result,
                             struct failure *ret_failure)
{
	const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
	const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
	const char *hint = PQresultErrorField(result, PG_DIAG_MESSAGE_HINT);
	size_t row = 0;

	if (state == NULL) {
		connection_failed(connection, ret_failure);
		return;
	}
	while (strncmp(state, classes[row].prefix, strlen(classes[row].prefix)) != 0)
		row++;
	ret_failure->code = classes[row].code;
	ret_failure->retryable = classes[row].code == QRET_ERR_CONNECTION;
	copy_line(ret_failure->sqlstate, sizeof(ret_failure->sqlstate), state);
	copy_line(ret_failure->message, sizeof(ret_failure->message), message ? message : state);
	copy_line(ret_failure->hint, sizeof(ret_failure->hint),
	          classes[row].hint[0] ? classes[row].hint
	          : hint               ? hint
	                               : "");
}

/*
 * The string was checked by the library before: libpq's own complaint about one that it cannot
 * parse would repeat it, password and all.
 */
static PGconn *open_connection(struct driver *driver, struct failure *ret_failure)
{
	const char *dsn = driver->settings.dsn;
	char timeout[24];
	const char *names[] = { "fallback_application_name", "connect_timeout", "dbname", NULL };
	const char *values[] = { "qretention", timeout, dsn, NULL };
	char *limit_ms = driver_get(driver, "connect_timeout_ms");
	PGconn *connection;

	snprintf(timeout, sizeof(timeout), "%lld",
	         (limit_ms ? strtoll(limit_ms, NULL, 10) + 999 : 10000) / 1000);
	free(limit_ms);
	if (dsn == NULL)
		names[2] = NULL; /* all else from the environment */
	connection = PQconnectdbParams(names, values, 1);
	if (PQstatus(connection) != CONNECTION_OK) {
		connection_failed(connection, ret_failure);
		PQfinish(connection);
		return NULL;
	}
	PQsetClientEncoding(connection, "UTF8");
	return connection;
}

/* SELECT columns FROM "schema".function(arguments), on the heap. */
static char *build_text(PGconn *connection, const char *schema, const struct database_call *call)
{
	static const char format[] = "SELECT %s FROM %s.%s(%s)";
	char *quoted = PQescapeIdentifier(connection, schema, strlen(schema));
	size_t size = strlen(call->columns) + strlen(call->function) + strlen(call->arguments) +
	              (quoted ? strlen(quoted) : 0) + sizeof(format);
	char *text = quoted ? malloc(size) : NULL;

	if (text != NULL)
		snprintf(text, size, format, call->columns, quoted, call->function,
		         call->arguments);
	PQfreemem(quoted);
	return text;
}

/* Sets the failure's code: QRET_DONE with the rows, or what went wrong. */
static PGresult *run_call(PGconn *connection, const char *schema, const struct database_call *call,
                          struct failure *ret_failure)
{
	char *text = build_text(connection, schema, call);
	PGresult *rows;

	if (text == NULL)
		return NULL;
	rows = PQexecParams(connection, text, call->value_count, NULL, call->values, NULL, NULL, 0);
	free(text);
	if (PQresultStatus(rows) == PGRES_TUPLES_OK) {
		ret_failure->code = QRET_DONE;
		return rows;
	}
	statement_failed(connection, rows, ret_failure);
	PQclear(rows);
	return NULL;
}

int database_call(struct driver *driver, const struct database_call *call,
                  struct pg_result **ret_rows, struct failure *ret_failure)
{
	int rc = qret_connect(driver->ctx, driver->settings.dsn);
	PGconn *connection = NULL;
	char *schema;

	*ret_failure = (struct failure){ .code = QRET_ERR_NOMEM };
	if (rc != QRET_DONE) {
		failure_take(driver->ctx, rc, ret_failure);
		return rc;
	}
	schema = driver_get(driver, "event_schema");
	if (schema != NULL)
		connection = open_connection(driver, ret_failure);
	if (connection != NULL)
		*ret_rows = run_call(connection, schema, call, ret_failure);
	PQfinish(connection);
	free(schema);
	return ret_failure->code;
}
