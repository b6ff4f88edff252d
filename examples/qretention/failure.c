/* SPDX-License-Identifier: MIT */
/* An error, kept past the call that reported it, and said once to the person at the terminal. */
#include "driver.h"
#include "text.h"

#include <stdarg.h>
#include <string.h>
#include <unistd.h>

static void copy_text(char *into, size_t size, const char *text)
{
	snprintf(into, size, "%s", text);
}

void failure_take(struct qret_ctx *ctx, int code, struct failure *ret_failure)
{
	ret_failure->code = code;
	ret_failure->retryable = qret_error_is_retryable(ctx);
	copy_text(ret_failure->sqlstate, sizeof(ret_failure->sqlstate), qret_error_sqlstate(ctx));
	copy_text(ret_failure->message, sizeof(ret_failure->message), qret_error_message(ctx));
	copy_text(ret_failure->hint, sizeof(ret_failure->hint), qret_error_hint(ctx));
}

/* The message, or what the code means where there is none. */
static const char *failure_message(const struct failure *failure)
{
	return failure->message[0] ? failure->message : qret_strerror(failure->code);
}

/* In one line where it goes to a file or a log, which are searched and counted by lines. */
static void print_sentence(const char *lead, const char *text)
{
	int column = fprintf(stderr, "%s: ", lead);

	if (isatty(fileno(stderr)))
		text_wrap(stderr, text, column, column);
	else
		fprintf(stderr, "%s\n", text);
}

int failure_say(struct driver *driver, const struct failure *failure)
{
	progress_clear(driver->progress);
	print_sentence("qretention", failure_message(failure));
	if (failure->hint[0])
		print_sentence("hint", failure->hint);
	return outcome_exit_code(failure->code);
}

int failure_report(struct driver *driver, const char *doing, const struct failure *failure)
{
	if (driver->settings.json) {
		struct json json;

		output_json_begin(&json, doing);
		output_json_outcome(&json, failure->code);
		output_json_failure(&json, failure);
		json_end(&json);
		output_flush();
	}
	return failure_say(driver, failure);
}

int failure_report_last(struct driver *driver, const char *doing, int code)
{
	struct failure failure;

	failure_take(driver->ctx, code, &failure);
	return failure_report(driver, doing, &failure);
}

int usage_error(const char *command, const char *format, ...)
{
	char message[512];
	va_list values;

	va_start(values, format);
	vsnprintf(message, sizeof(message), format, values);
	va_end(values);
	print_sentence("qretention", message);
	fprintf(stderr, "try: qretention %s%s--help\n", command ? command : "", command ? " " : "");
	return EXIT_USAGE;
}
