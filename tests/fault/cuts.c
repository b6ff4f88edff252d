/* SPDX-License-Identifier: MIT */
/*
 * For each line on stdin one context, one cycle, and what it came to on stdout. Built with the
 * address and undefined-behaviour sanitizers by test_sanitizers.py, which cuts its connections.
 */
#include <stdio.h>
#include <string.h>

#include "qretention.h"

static size_t seen;

/* Reads all of it, as a host that logs would. */
static void on_log(void *user_data, const struct qret_log_record *record)
{
	(void)user_data;
	seen += strlen(record->text) + strlen(record->event);
}

static int cycle(const char *conninfo)
{
	struct qret_cycle_report report = { .size = sizeof(report) };
	struct qret_ctx *ctx = NULL;
	int rc = qret_ctx_new(&ctx);

	if (rc != QRET_DONE)
		return rc;
	qret_set_log(ctx, QRET_LOG_DEBUG, on_log, NULL, NULL);
	qret_set_option(ctx, "batch_size", "2");
	qret_set_option(ctx, "step_target_ms", "600000");
	qret_set_option(ctx, "statement_timeout_ms", "2000");
	rc = qret_connect(ctx, conninfo);
	if (rc == QRET_DONE)
		rc = qret_run_cycle(ctx, &report);
	seen += strlen(qret_error_message(ctx)) + strlen(qret_error_hint(ctx)) +
	        strlen(qret_error_sqlstate(ctx));
	qret_ctx_free(ctx);
	return rc;
}

int main(int argc, char **argv)
{
	char line[64];

	while (argc == 2 && fgets(line, sizeof(line), stdin) != NULL) {
		printf("%d\n", cycle(argv[1]));
		fflush(stdout);
	}
	return seen == 0;
}
