/* SPDX-License-Identifier: MIT */
/* What the JSON results of all commands have in common. */
#include "driver.h"

#include <errno.h>
#include <string.h>

void output_json_begin(struct json *json, const char *command)
{
	json_begin(json, stdout);
	json_text(json, "command", command);
}

void output_json_outcome(struct json *json, int code)
{
	json_text(json, "outcome", outcome_name(code));
	json_integer(json, "code", code);
}

void output_json_failure(struct json *json, const struct failure *failure)
{
	json_open_object(json, "error");
	json_text(json, "message",
	          failure->message[0] ? failure->message : qret_strerror(failure->code));
	json_text(json, "hint", failure->hint[0] ? failure->hint : NULL);
	json_text(json, "sqlstate", failure->sqlstate[0] ? failure->sqlstate : NULL);
	json_bool(json, "retryable", failure->retryable);
	json_close_object(json);
}

static int write_error; /* of the first write that failed: the last one may have nothing to say */

int output_flush(void)
{
	int failed = fflush(stdout) != 0;

	if (!failed && !ferror(stdout))
		return 0;
	if (write_error == 0)
		write_error = failed ? errno : EIO;
	return -1;
}

const char *output_complaint(void)
{
	return write_error == 0 || write_error == EPIPE ? NULL : strerror(write_error);
}
