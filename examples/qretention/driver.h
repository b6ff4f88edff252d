/* SPDX-License-Identifier: MIT */
/*
 * What the driver's files share: its state, the shape of a command, and one section of prototypes
 * for each file. Everything that touches the server goes through the library's public header, but
 * for the two thin SQL calls of database.c.
 */
#ifndef QRETENTION_DRIVER_H
#define QRETENTION_DRIVER_H

#include <qretention.h>

#include "arguments.h"
#include "json.h"

/* Options that every command takes. */
struct driver_settings {
	const char *dsn;
	struct argument_list sets; /* NAME=VALUE each */
	int ignore_environment;
	int json;
	int verbose;
	int quiet;
	int help;
	int version;
};

struct progress;

struct driver {
	struct qret_ctx *ctx;
	struct driver_settings settings;
	struct progress *progress; /* NULL unless a line is being shown */
	int repeats_errors; /* the command reports each error itself, so log lines need not */
};

/* A subcommand: a row of the table in main.c. */
struct command {
	const char *name;
	const char *words; /* its positional arguments, for the usage line */
	const char *summary;
	const char *description; /* the help's paragraphs */
	const struct argument *arguments;
	size_t settings_size; /* of the struct that `arguments` fills */
	size_t most_words;
	int unconnected; /* it needs no server, or opens a connection of its own */
	int (*run)(struct driver *driver, const void *settings, const struct argument_list *words);
};

extern const struct command command_install;
extern const struct command command_version;
extern const struct command command_worklist;
extern const struct command command_step;
extern const struct command command_cycle;
extern const struct command command_run;
extern const struct command command_options;
extern const struct command command_prune;
extern const struct command command_record;
extern const struct command command_quiet_receivers;

/* ---- main.c, help.c -------------------------------------------------------------------------- */

extern const struct argument driver_arguments[];
extern const struct command *const driver_commands[]; /* ends with NULL */
extern const struct argument no_arguments[];

void help_program(FILE *stream);
void help_command(FILE *stream, const struct command *command);

/* ---- outcome.c: names and exit codes --------------------------------------------------------- */

#define EXIT_TROUBLE 1 /* the driver's own: output cannot be written, no memory */
#define EXIT_USAGE   2 /* the command line is wrong */

const char *outcome_name(int code);
const char *outcome_meaning(int code);
int outcome_exit_code(int code);
void outcome_help(FILE *stream);

/* ---- failure.c: an error, kept past the call that reported it -------------------------------- */

struct failure {
	int code;
	int32_t retryable;
	char sqlstate[6];
	char message[1024];
	char hint[1024];
};

/* Copies the context's last failure: the next call on the context forgets it. */
void failure_take(struct qret_ctx *ctx, int code, struct failure *ret_failure);
/* Message and hint on stderr, then the exit code. */
int failure_say(struct driver *driver, const struct failure *failure);
/* The same, with --json after an object on stdout. */
int failure_report(struct driver *driver, const char *doing, const struct failure *failure);
/* The same for the context's last failure. */
int failure_report_last(struct driver *driver, const char *doing, int code);
/* A wrong command line: says so, and where help is. Returns EXIT_USAGE. */
__attribute__((format(printf, 2, 3))) int usage_error(const char *command, const char *format, ...);

/* ---- context.c, log_lines.c, stop.c ---------------------------------------------------------- */

/* Makes the context: log, environment, --set, connection. Returns 0 or an exit code. */
int driver_open(struct driver *driver, int unconnected);
void driver_close(struct driver *driver);
/* Sets one library option. Returns 0 or an exit code; the failure is reported. */
int driver_set(struct driver *driver, const char *name, const char *value);
int driver_set_integer(struct driver *driver, const char *name, int64_t value);
/* Sets it unless --set gave it a value. */
int driver_set_unless_given(struct driver *driver, const char *name, const char *value);
/* An option's value on the heap, or NULL. */
char *driver_get(struct driver *driver, const char *name);

void log_lines_attach(struct driver *driver);

/* SIGINT and SIGTERM become qret_stop; a second one ends the process as usual. */
void stop_on_signals(struct qret_ctx *ctx);
void stop_forget(void);
int stop_requested(void);

/* ---- cycle_loop.c, progress.c ---------------------------------------------------------------- */

/* What the progress line can say. Zeroes stand for what is not known. */
struct progress_goal {
	int64_t visits; /* partitions to step, counted once a phase */
	int64_t rows;
};

/* One cycle with its progress line. The report is filled whatever the outcome. */
int cycle_drive(struct driver *driver, const struct progress_goal *goal,
                struct qret_cycle_report *ret_report, struct failure *ret_failure);
/* How many visits the coming cycle will make at most; 0 if that cannot be known. */
int64_t cycle_count_visits(struct driver *driver);

/* A line is shown only to a person: both outputs are terminals, no --quiet, no --json. */
int progress_wanted(const struct driver *driver);
/* NULL where none is wanted; the other calls accept that. */
struct progress *progress_begin(const struct driver *driver, const struct progress_goal *goal);
void progress_show(struct progress *progress, const struct qret_cycle_report *report);
void progress_clear(struct progress *progress);
void progress_end(struct progress *progress);

/* ---- output_*.c ------------------------------------------------------------------------------ */

/* Begins a result's object with its command and, if it has one, its outcome. */
void output_json_begin(struct json *json, const char *command);
void output_json_outcome(struct json *json, int code);
void output_json_failure(struct json *json, const struct failure *failure);
/* Flushes stdout. Returns 0, or -1 once it cannot be written any more. */
int output_flush(void);
/* Why it could not. NULL: it could, or a reader went away, which is no news to anybody. */
const char *output_complaint(void);

void output_report(const char *what, const struct qret_cycle_report *report);
/* One line a cycle; nothing for an idle one unless `idle_too`. */
void output_report_line(const struct qret_cycle_report *report, int idle_too);
void output_report_json(const char *command, const struct qret_cycle_report *report,
                        const struct failure *failure);
void output_prune(const struct qret_cycle_report *report);

void output_worklist_head(void);
void output_worklist_row(const struct qret_work_item *item, int64_t clock_us);
void output_step_head(void);
void output_step_row(const char *name, const struct qret_step_result *result);

/* ---- database.c: SQL calls that the library has no call for ---------------------------------- */

struct pg_result;

/* A call of a function of the event schema. */
struct database_call {
	const char *columns;   /* the SELECT list */
	const char *function;  /* its name, without the schema */
	const char *arguments; /* the text between its parentheses, with $1.. for the values */
	const char *const *values;
	int value_count;
};

/* Returns QRET_DONE with the rows (the caller clears them), or an error with its failure. */
int database_call(struct driver *driver, const struct database_call *call,
                  struct pg_result **ret_rows, struct failure *ret_failure);

#endif
