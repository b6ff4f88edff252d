/* SPDX-License-Identifier: MIT */
/* qretention quiet-receivers: who has succeeded at nothing for long, pruned deliveries included. */
#include "driver.h"
#include "text.h"

#include <libpq-fe.h>

#define WEEK           604800
#define RECEIVER_WIDTH 55

struct quiet_settings {
	struct argument_integer older_than;
};

static const struct argument quiet_arguments[] = {
	{ .name = "older-than",
	  .value_name = "SECONDS",
	  .help = "how long without a success is quiet (604800, a week)",
	  .kind = ARGUMENT_INTEGER,
	  .offset = offsetof(struct quiet_settings, older_than),
	  .minimum = 0,
	  .maximum = INT64_MAX },
	{ 0 },
};

static const char *last_success(const PGresult *rows, int row)
{
	return PQgetisnull(rows, row, 1) ? NULL : PQgetvalue(rows, row, 1);
}

static void print_text(const PGresult *rows)
{
	for (int i = 0; i < PQntuples(rows); i++) {
		const char *last = last_success(rows, i);

		if (i == 0)
			printf("%-*s  %s\n", RECEIVER_WIDTH, "receiver", "last success");
		printf("%-*s  %s\n", RECEIVER_WIDTH, PQgetvalue(rows, i, 0), last ? last : "never");
	}
	printf("%d quiet receiver%s\n", PQntuples(rows), PQntuples(rows) == 1 ? "" : "s");
}

static void print_json(const PGresult *rows)
{
	struct json json;

	output_json_begin(&json, "quiet-receivers");
	output_json_outcome(&json, QRET_DONE);
	json_open_array(&json, "receivers");
	for (int i = 0; i < PQntuples(rows); i++) {
		json_open_object(&json, NULL);
		json_text(&json, "receiver", PQgetvalue(rows, i, 0));
		json_text(&json, "last_success", last_success(rows, i));
		json_close_object(&json);
	}
	json_close_array(&json);
	json_end(&json);
}

static int run_quiet(struct driver *driver, const void *data, const struct argument_list *words)
{
	const struct quiet_settings *settings = data;
	char seconds[24];
	const char *values[] = { seconds };
	struct database_call call = {
		.columns = "receiver_key, to_char(last_succeeded_at AT TIME ZONE 'UTC', "
			   "'YYYY-MM-DD HH24:MI:SS\"Z\"')",
		.function = "quiet_receivers_v1",
		.arguments = "$1",
		.values = values,
		.value_count = 1,
	};
	struct failure failure;
	PGresult *rows = NULL;
	int rc;

	(void)words;
	snprintf(seconds, sizeof(seconds), "%lld",
	         (long long)(settings->older_than.given ? settings->older_than.value : WEEK));
	rc = database_call(driver, &call, &rows, &failure);
	if (rc != QRET_DONE)
		return failure_report(driver, "quiet-receivers", &failure);
	if (driver->settings.json)
		print_json(rows);
	else
		print_text(rows);
	PQclear(rows);
	return outcome_exit_code(rc);
}

const struct command command_quiet_receivers = {
	.name = "quiet-receivers",
	.summary = "list receivers that have not succeeded for long",
	.description =
		"Lists the receivers whose last success is longer ago than --older-than, or that "
		"have deliveries and never succeeded. The prune remembers the last success among "
		"what it deletes, so pruning does not make a receiver look quiet.",
	.arguments = quiet_arguments,
	.settings_size = sizeof(struct quiet_settings),
	.unconnected = 1,
	.run = run_quiet,
};
