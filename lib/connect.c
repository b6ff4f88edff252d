/* SPDX-License-Identifier: MIT */
/*
 * Non-blocking connect, host by host. libpq's asynchronous connect ignores connect_timeout and
 * would sit on a deaf first host for ever, so each host is a try of its own, with its own limit.
 */
#include "connect.h"

#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <libpq-fe.h>

#include "clock.h"
#include "qretention.h"
#include "sqlstate.h"
#include "text.h"

/* Starts on host `attempt`. */
static void start(struct connect *connect)
{
	struct keywords keywords;

	target_keywords(connect->target, connect->attempt, connect->limits.idle_limit_ms,
	                &keywords);
	connect->connection = PQconnectStartParams(keywords.names, keywords.values, 0);
	connect->events = QRET_POLL_WRITE;
	connect->deadline_us = clock_after_ms(qret_now_us(), connect->limits.connect_timeout_ms);
	if (connect->connection == NULL)
		return;
	/*
	 * The only way to the SQLSTATE of a refused connect in this libpq: have it in the
	 * message.
	 */
	PQsetErrorVerbosity(connect->connection, PQERRORS_VERBOSE);
	/* A server may say something before it lets us in, and libpq would print it. */
	if (connect->notice != NULL)
		PQsetNoticeReceiver(connect->connection, connect->notice, connect->notice_data);
}

/* False where there is no host left, or none that may be tried: it is the same file for all. */
static bool try_host(struct connect *connect)
{
	if (connect->attempt >= target_attempts(connect->target))
		return false;
	if (target_check_password_file(connect->target, &connect->last) != QRET_DONE) {
		connect->attempt = target_attempts(connect->target);
		return false;
	}
	start(connect);
	return true;
}

void connect_begin(struct connect *connect, const struct target *target,
                   struct connect_limits limits)
{
	memset(connect, 0, sizeof(*connect));
	connect->target = target;
	connect->limits = limits;
	try_host(connect);
}

void connect_abandon(struct connect *connect)
{
	if (connect->connection != NULL)
		PQfinish(connect->connection);
	connect->connection = NULL;
}

/* Finds "FATAL:  28P01: text" in libpq's message; severity may be in any language. */
static const char *find_sqlstate(const char *message, char *ret_sqlstate)
{
	for (const char *at = strstr(message, ":  "); at != NULL; at = strstr(at + 1, ":  ")) {
		const char *code = at + 3;

		if (strspn(code, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") == 5 && code[5] == ':' &&
		    code[6] == ' ') {
			memcpy(ret_sqlstate, code, 5);
			ret_sqlstate[5] = '\0';
			return code + 7;
		}
	}
	return NULL;
}

/* Keeps the first line, without the file and line of the server's source that verbosity adds. */
static void record_refusal(struct connect *connect)
{
	char sqlstate[6] = "";
	char text[sizeof(connect->last.message)];
	const char *message = connect->connection == NULL ? "out of memory"
	                                                  : PQerrorMessage(connect->connection);
	const char *server = find_sqlstate(message, sqlstate);

	snprintf(text, sizeof(text), "%.*s", (int)strcspn(server != NULL ? server : message, "\n"),
	         server != NULL ? server : message);
	/* What a server refuses of the options it was sent, it repeats: that is not passed on. */
	if (server != NULL && (strncmp(sqlstate, "22", 2) == 0 || strcmp(sqlstate, "42704") == 0))
		snprintf(text, sizeof(text), "the server refuses a startup option");
	if (server != NULL)
		error_set_server(&connect->last, sqlstate, text, NULL);
	else if (connect->connection != NULL && PQconnectionNeedsPassword(connect->connection))
		error_set(&connect->last, QRET_ERR_CONNECTION, false,
		          "give a password in the conninfo or a password file", "%s", text);
	else
		error_set(&connect->last, QRET_ERR_CONNECTION, true, NULL, "%s", text);
	/*
	 * A server that refuses a connect has refused a connection, whatever its SQLSTATE means
	 * later on.
	 */
	connect->last.code = QRET_ERR_CONNECTION;
}

static PostgresPollingStatusType advance(struct connect *connect)
{
	if (connect->connection == NULL || PQstatus(connect->connection) == CONNECTION_BAD)
		return PGRES_POLLING_FAILED;
	struct pollfd ready = { PQsocket(connect->connection),
		                connect->events == QRET_POLL_READ ? POLLIN : POLLOUT, 0 };
	int polled = poll(&ready, 1, 0);

	/*
	 * PQconnectPoll believes its caller that the socket is ready, so ask; EINTR is "not
	 * yet".
	 */
	if (polled <= 0)
		return connect->events == QRET_POLL_READ ? PGRES_POLLING_READING
		                                         : PGRES_POLLING_WRITING;
	return PQconnectPoll(connect->connection);
}

/* Gives this host up; false if it was the last. */
static bool next_host(struct connect *connect)
{
	connect_abandon(connect);
	connect->attempt++;
	return try_host(connect);
}

int connect_process(struct connect *connect, struct pg_conn **ret_connection, struct error *error)
{
	if (connect->attempt >= target_attempts(connect->target)) {
		*error = connect->last;
		return error->code;
	}
	for (;;) {
		switch (advance(connect)) {
		case PGRES_POLLING_OK:
			PQsetErrorVerbosity(connect->connection, PQERRORS_DEFAULT);
			*ret_connection = connect->connection;
			connect->connection = NULL;
			return QRET_DONE;
		case PGRES_POLLING_READING:
			connect->events = QRET_POLL_READ;
			break;
		case PGRES_POLLING_WRITING:
			connect->events = QRET_POLL_WRITE;
			break;
		default:
			record_refusal(connect);
			if (!next_host(connect)) {
				*error = connect->last;
				return error->code;
			}
			continue;
		}
		if (qret_now_us() < connect->deadline_us)
			return QRET_WAIT;
		error_set(&connect->last, QRET_ERR_TIMEOUT, true, "see option connect_timeout_ms",
		          "no connection to host %s within %lld ms", PQhost(connect->connection),
		          (long long)connect->limits.connect_timeout_ms);
		if (!next_host(connect)) {
			*error = connect->last;
			return error->code;
		}
	}
}
