/* SPDX-License-Identifier: MIT */
/* qretention prune: the outbox alone, until nothing is due or a limit is reached. */
#include "driver.h"

struct prune_settings {
	struct argument_integer days;
	struct argument_integer limit;
	struct argument_integer batch_rows;
};

static const struct argument prune_arguments[] = {
	{ .name = "days",
	  .value_name = "N",
	  .help = "default window of this run, in days (event_retention_days); windows that events "
	          "have of their own stay as they are",
	  .kind = ARGUMENT_INTEGER,
	  .offset = offsetof(struct prune_settings, days),
	  .minimum = INT64_MIN,
	  .maximum = INT64_MAX },
	{ .name = "limit",
	  .value_name = "N",
	  .help = "delete at most N events (event_prune_limit)",
	  .kind = ARGUMENT_INTEGER,
	  .offset = offsetof(struct prune_settings, limit),
	  .minimum = 1,
	  .maximum = INT64_MAX },
	{ .name = "batch-rows",
	  .value_name = "N",
	  .help = "rows a transaction deletes at most, events and deliveries together "
	          "(event_batch_rows)",
	  .kind = ARGUMENT_INTEGER,
	  .offset = offsetof(struct prune_settings, batch_rows),
	  .minimum = INT64_MIN,
	  .maximum = INT64_MAX },
	{ 0 },
};

static int set_given(struct driver *driver, const char *name, const struct argument_integer *number)
{
	return number->given ? driver_set_integer(driver, name, number->value) : 0;
}

/* A prune asked for by hand is not the relay's: it runs now, and needs no leader to be safe. */
static int configure(struct driver *driver, const struct prune_settings *settings)
{
	int rc = driver_set(driver, "engines", "event");

	if (rc == 0)
		rc = driver_set(driver, "event_prune", "true");
	if (rc == 0)
		rc = driver_set(driver, "event_prune_interval_ms", "0");
	if (rc == 0)
		rc = driver_set_unless_given(driver, "gate", "none");
	if (rc == 0)
		rc = set_given(driver, "event_retention_days", &settings->days);
	if (rc == 0)
		rc = set_given(driver, "event_prune_limit", &settings->limit);
	if (rc == 0)
		rc = set_given(driver, "event_batch_rows", &settings->batch_rows);
	return rc;
}

static int run_prune(struct driver *driver, const void *data, const struct argument_list *words)
{
	const struct prune_settings *settings = data;
	struct progress_goal goal = { .rows = settings->limit.value };
	struct qret_cycle_report report;
	struct failure failure;
	int rc = configure(driver, settings);

	(void)words;
	if (rc != 0)
		return rc;
	driver->repeats_errors = 1;
	rc = cycle_drive(driver, &goal, &report, &failure);
	if (driver->settings.json)
		output_report_json("prune", &report, &failure);
	else if (rc >= 0)
		output_prune(&report);
	output_flush();
	return rc < 0 || rc == QRET_PARTIAL ? failure_say(driver, &failure) : outcome_exit_code(rc);
}

const struct command command_prune = {
	.name = "prune",
	.summary = "delete the outbox's events that nothing is owed on",
	.description =
		"Deletes every event that is due, in small transactions, and says what each arm "
		"took. An event is due when every delivery succeeded or was cancelled and it was "
		"recorded with delete_when 'succeeded'; when every delivery is terminal and it was "
		"recorded with 'settled'; or when its own window, or else the default one, has "
		"passed and every delivery is terminal.\n\n"
		"Any number of prunes may run side by side. With --limit, exit code 8 says that the "
		"limit was reached with work left.",
	.arguments = prune_arguments,
	.settings_size = sizeof(struct prune_settings),
	.run = run_prune,
};
