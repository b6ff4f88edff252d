/* SPDX-License-Identifier: MIT */
/*
 * Error detail. Fixed buffers, so that reporting a failure cannot fail; what does not fit is cut
 * at a character boundary.
 */
#include "error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "qretention.h"
#include "sqlstate.h"
#include "text.h"

void error_clear(struct error *error)
{
	error->code = QRET_DONE;
	error->retryable = false;
	error->sqlstate[0] = '\0';
	error->message[0] = '\0';
	error->hint[0] = '\0';
}

/* An SQL_ASCII server sends whatever bytes it has. */
static void copy_valid(char *target, size_t capacity, const char *source)
{
	text_copy(target, capacity, source);
	text_make_valid(target);
}

int error_set(struct error *error, int code, bool retryable, const char *hint, const char *format,
              ...)
{
	va_list arguments;

	error_clear(error);
	error->code = code;
	error->retryable = retryable;
	va_start(arguments, format);
	vsnprintf(error->message, sizeof(error->message), format, arguments);
	va_end(arguments);
	copy_valid(error->message, sizeof(error->message), error->message);
	copy_valid(error->hint, sizeof(error->hint), hint);
	return code;
}

int error_set_server(struct error *error, const char *sqlstate, const char *message,
                     const char *hint)
{
	const struct sqlstate_rule *rule = sqlstate_rule(sqlstate);

	error_clear(error);
	error->code = rule->code;
	error->retryable = rule->action != SQLSTATE_PERMANENT;
	text_copy(error->sqlstate, sizeof(error->sqlstate), sqlstate);
	copy_valid(error->message, sizeof(error->message), message);
	copy_valid(error->hint, sizeof(error->hint),
	           hint != NULL && hint[0] != '\0' ? hint : rule->hint);
	return error->code;
}

void error_prefix(struct error *error, const char *context)
{
	char whole[sizeof(error->message) + 128];

	snprintf(whole, sizeof(whole), "%s: %s", context, error->message);
	text_copy(error->message, sizeof(error->message), whole);
}

const char *qret_strerror(int code)
{
	switch (code) {
	case QRET_DONE:
		return "done";
	case QRET_MORE:
		return "progress was made, call again";
	case QRET_WAIT:
		return "waiting for a descriptor or a deadline";
	case QRET_BUSY:
		return "another instance leads, or the next cycle is not due";
	case QRET_STOPPED:
		return "stopped";
	case QRET_PARTIAL:
		return "finished, but some items failed and were skipped";
	case QRET_PAUSED:
		return "every rule that would run is paused";
	case QRET_STANDBY:
		return "the server is read-only";
	case QRET_BUDGET:
		return "the budget of the cycle is used up, work is left";
	case QRET_ERR_NOMEM:
		return "out of memory";
	case QRET_ERR_ARGUMENT:
		return "bad argument";
	case QRET_ERR_STATE:
		return "call out of order";
	case QRET_ERR_REENTRANT:
		return "called from inside a callback of the same context";
	case QRET_ERR_FORKED:
		return "used in a child process";
	case QRET_ERR_OPTION:
		return "option refused";
	case QRET_ERR_CONNECTION:
		return "no connection to the server";
	case QRET_ERR_TIMEOUT:
		return "a time limit passed";
	case QRET_ERR_SQL:
		return "the server refused a statement";
	case QRET_ERR_SCHEMA:
		return "an object of the schema is missing or of another version";
	case QRET_ERR_PRIVILEGE:
		return "a grant is missing";
	case QRET_ERR_LEADER_LOST:
		return "the leader gate was lost";
	default:
		return code > 0 ? "unknown outcome" : "unknown error";
	}
}
