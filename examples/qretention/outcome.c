/* SPDX-License-Identifier: MIT */
/*
 * The name and the exit code of each outcome: an outcome N exits with N, an error -N with 10 + N,
 * so that a script can tell them apart without reading text.
 */
#include "driver.h"

#include <stdlib.h>

#define UNKNOWN_OUTCOME 9
#define ERROR_BASE      10
#define ERROR_MOST      99 /* well below what shells use for signals */

static const struct outcome {
	int code;
	const char *name;
	const char *meaning;
} outcomes[] = {
	{ QRET_DONE, "done", "done" },
	{ QRET_BUSY, "busy", "another instance leads, or the next cycle is not due" },
	{ QRET_STOPPED, "stopped", "ended by a signal, between batches" },
	{ QRET_PARTIAL, "partial", "finished, but some items failed and were skipped" },
	{ QRET_PAUSED, "paused", "every rule that would run is paused" },
	{ QRET_STANDBY, "standby", "the server is read-only; nothing was tried" },
	{ QRET_BUDGET, "budget", "a time or row limit ended it; work is left" },
	{ QRET_ERR_NOMEM, "nomem", "out of memory" },
	{ QRET_ERR_ARGUMENT, "argument", "an argument was refused" },
	{ QRET_ERR_STATE, "state", "a call out of order" },
	{ QRET_ERR_REENTRANT, "reentrant", "called from inside a callback" },
	{ QRET_ERR_FORKED, "forked", "used in a child process" },
	{ QRET_ERR_OPTION, "option", "an option or the connection string was refused" },
	{ QRET_ERR_CONNECTION, "connection", "cannot connect, or the connection was lost" },
	{ QRET_ERR_TIMEOUT, "timeout", "a time limit passed" },
	{ QRET_ERR_SQL, "sql", "the server refused a statement" },
	{ QRET_ERR_SCHEMA, "schema", "a needed table or function is missing or too old" },
	{ QRET_ERR_PRIVILEGE, "privilege", "the role lacks a grant" },
	{ QRET_ERR_LEADER_LOST, "leader_lost", "leadership was lost in mid-cycle" },
};

#define OUTCOME_COUNT (sizeof(outcomes) / sizeof(outcomes[0]))

static const struct outcome *find(int code)
{
	for (size_t i = 0; i < OUTCOME_COUNT; i++)
		if (outcomes[i].code == code)
			return &outcomes[i];
	return NULL;
}

const char *outcome_name(int code)
{
	const struct outcome *outcome = find(code);

	if (outcome != NULL)
		return outcome->name;
	return code < 0 ? "error" : "outcome";
}

const char *outcome_meaning(int code)
{
	const struct outcome *outcome = find(code);

	return outcome != NULL ? outcome->meaning : qret_strerror(code);
}

int outcome_exit_code(int code)
{
	if (code >= 0)
		return code > QRET_BUDGET ? UNKNOWN_OUTCOME : code;
	return code < -(ERROR_MOST - ERROR_BASE) ? ERROR_MOST : ERROR_BASE - code;
}

static void print_row(FILE *stream, int exit_code, const char *meaning)
{
	fprintf(stream, "  %2d  %s\n", exit_code, meaning);
}

void outcome_help(FILE *stream)
{
	print_row(stream, outcome_exit_code(QRET_DONE), outcome_meaning(QRET_DONE));
	print_row(stream, EXIT_TROUBLE, "the output could not be written, or no memory");
	print_row(stream, EXIT_USAGE, "the command line is wrong");
	for (size_t i = 1; i < OUTCOME_COUNT; i++)
		print_row(stream, outcome_exit_code(outcomes[i].code), outcomes[i].meaning);
}
