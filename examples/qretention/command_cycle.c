/* SPDX-License-Identifier: MIT */
/* qretention cycle: one full cycle. */
#include "driver.h"

static int run_cycle(struct driver *driver, const void *settings, const struct argument_list *words)
{
	struct progress_goal goal = { 0 };
	struct qret_cycle_report report;
	struct failure failure;
	int rc;

	(void)settings;
	(void)words;
	if (progress_wanted(driver))
		goal.visits = cycle_count_visits(driver);
	driver->repeats_errors = 1;
	rc = cycle_drive(driver, &goal, &report, &failure);
	if (driver->settings.json)
		output_report_json("cycle", &report, &failure);
	else if (rc >= 0)
		output_report("cycle", &report);
	output_flush();
	return rc < 0 || rc == QRET_PARTIAL ? failure_say(driver, &failure) : outcome_exit_code(rc);
}

const struct command command_cycle = {
	.name = "cycle",
	.summary = "run one cycle and say what it deleted",
	.description =
		"Runs one cycle: takes the gate, lists the partitions with something to delete, and "
		"deletes in small transactions until nothing deletable is left. If another instance "
		"leads, nothing is done and the exit code is 3.\n\n"
		"On a terminal a line shows how far it is. SIGINT and SIGTERM end it between two "
		"batches, with exit code 4; what is deleted by then stays deleted, and the next "
		"cycle goes on from there.",
	.arguments = no_arguments,
	.run = run_cycle,
};
