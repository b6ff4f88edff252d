/* SPDX-License-Identifier: MIT */
/* The help of the program and of each command, from the tables that parse the command line. */
#include "driver.h"
#include "text.h"

#define COMMAND_COLUMN 19

static void print_commands(FILE *stream)
{
	for (const struct command *const *row = driver_commands; *row; row++) {
		int column = fprintf(stream, "  %s", (*row)->name);

		text_wrap(stream, (*row)->summary, COMMAND_COLUMN, column);
	}
}

void help_program(FILE *stream)
{
	fputs("usage: qretention COMMAND [OPTION...]\n\n", stream);
	text_wrap(
		stream,
		"Retention for message brokers and outboxes kept in PostgreSQL: deletes what their "
		"policies let go, in small transactions that nobody waits for.",
		0, 0);
	fputs("\ncommands (`qretention COMMAND --help` tells more):\n", stream);
	print_commands(stream);
	fputs("\noptions:\n", stream);
	arguments_help(stream, driver_arguments);
	fputs("\nexit codes:\n", stream);
	outcome_help(stream);
	fputs("\nexamples:\n"
	      "  qretention install --dsn 'host=/run/postgresql dbname=app'\n"
	      "  qretention cycle --dsn postgresql://app@db.example/app\n"
	      "  PGDATABASE=app qretention run --set interval_ms=2000 --json\n",
	      stream);
}

void help_command(FILE *stream, const struct command *command)
{
	fprintf(stream, "usage: qretention %s [OPTION...]%s%s\n\n", command->name,
	        command->words ? " " : "", command->words ? command->words : "");
	text_wrap(stream, command->description, 0, 0);
	fputs("\noptions:\n", stream);
	arguments_help(stream, command->arguments);
	arguments_help(stream, driver_arguments);
	fputs("\nexit codes: see `qretention --help`\n", stream);
}
