/* SPDX-License-Identifier: MIT */
/* qretention run: cycles at their interval until a signal ends it between two batches. */
#include "driver.h"

struct run_settings {
	struct argument_integer cycles;
};

static const struct argument run_arguments[] = {
	{ .letter = 'n',
	  .name = "cycles",
	  .value_name = "N",
	  .help = "end after N cycles; without it, only a signal ends the loop",
	  .kind = ARGUMENT_INTEGER,
	  .offset = offsetof(struct run_settings, cycles),
	  .minimum = 1,
	  .maximum = INT64_MAX },
	{ 0 },
};

/* A failure of the first cycle is told in full, later ones by the library's rate-limited log. */
static void report_cycle(struct driver *driver, const struct qret_cycle_report *report,
                         const struct failure *failure, int is_first)
{
	if (driver->settings.json)
		output_report_json("run", report, failure);
	else if (report->outcome >= 0)
		output_report_line(report, driver->settings.verbose > 0);
	if (report->outcome < 0 && is_first)
		failure_say(driver, failure);
}

/* Nobody but the operator can mend it, and it is there from the start: better to end than to loop. */
static int is_misconfigured(int rc, const struct failure *failure, int64_t cycles_before)
{
	return rc < 0 && !failure->retryable && cycles_before == 0;
}

/* Sleeps until the next cycle is due, a stop, or a signal that asks for one. */
static int sleep_until_due(struct driver *driver)
{
	while (!stop_requested() && qret_next_cycle_us(driver->ctx) > qret_now_us()) {
		int rc = qret_wait(driver->ctx);

		if (rc < 0)
			return rc;
	}
	return QRET_DONE;
}

static int run_loop(struct driver *driver, const void *data, const struct argument_list *words)
{
	const struct run_settings *settings = data;
	struct qret_cycle_report report;
	struct failure failure;

	(void)words;
	for (int64_t cycles = 0; !stop_requested(); cycles++) {
		int rc;

		driver->repeats_errors = cycles == 0;
		rc = cycle_drive(driver, NULL, &report, &failure);
		report_cycle(driver, &report, &failure, cycles == 0);
		if (output_flush() < 0)
			return EXIT_TROUBLE;
		if (is_misconfigured(rc, &failure, cycles))
			return outcome_exit_code(rc);
		if (rc == QRET_STOPPED)
			break;
		if (settings->cycles.given && cycles + 1 >= settings->cycles.value)
			return outcome_exit_code(rc);
		rc = sleep_until_due(driver);
		if (rc < 0)
			return failure_report_last(driver, "run", rc);
	}
	return outcome_exit_code(QRET_DONE);
}

const struct command command_run = {
	.name = "run",
	.summary = "run cycles at their interval until SIGTERM or SIGINT",
	.description =
		"Runs a cycle every interval_ms until SIGTERM or SIGINT, which end it between two "
		"batches with exit code 0. A line is printed for each cycle that deleted something, "
		"with --verbose for every cycle, with --json an object for every cycle.\n\n"
		"A lost connection, a restart or a failover is outlived: the loop reports it and "
		"tries again. Only where the very first cycle fails for a reason that trying again "
		"cannot mend (a wrong password, nothing installed) does it end with that error's "
		"exit code.",
	.arguments = run_arguments,
	.settings_size = sizeof(struct run_settings),
	.run = run_loop,
};
