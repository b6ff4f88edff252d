/* SPDX-License-Identifier: MIT */
/* qretention version: of the program, of the library, and of what the database has installed. */
#include "driver.h"

static const char *const parts[] = { "broker", "log", "event" };

#define PART_COUNT (sizeof(parts) / sizeof(parts[0]))

static void print_text(const int32_t *versions)
{
	printf("qretention %s, library %s\n", QRET_VERSION, qret_version());
	for (size_t i = 0; i < PART_COUNT; i++) {
		if (versions[i] == 0)
			printf("  %-7s not installed\n", parts[i]);
		else
			printf("  %-7s version %d\n", parts[i], (int)versions[i]);
	}
}

static void print_json(const int32_t *versions)
{
	struct json json;

	output_json_begin(&json, "version");
	output_json_outcome(&json, QRET_DONE);
	json_text(&json, "qretention", QRET_VERSION);
	json_text(&json, "library", qret_version());
	json_open_object(&json, "parts");
	for (size_t i = 0; i < PART_COUNT; i++)
		json_integer(&json, parts[i], versions[i]);
	json_close_object(&json);
	json_end(&json);
}

static int run_version(struct driver *driver, const void *settings,
                       const struct argument_list *words)
{
	int32_t versions[PART_COUNT] = { 0 };

	(void)settings;
	(void)words;
	for (size_t i = 0; i < PART_COUNT; i++) {
		int rc = qret_schema_version(driver->ctx, parts[i], &versions[i]);

		if (rc != QRET_DONE)
			return failure_report_last(driver, "version", rc);
	}
	if (driver->settings.json)
		print_json(versions);
	else
		print_text(versions);
	return outcome_exit_code(QRET_DONE);
}

const struct command command_version = {
	.name = "version",
	.summary = "say what is installed in the database",
	.description =
		"Asks the server which parts are installed, and in which version (0 in the JSON: "
		"not installed). Also a way to see that the server can be reached. `qretention "
		"--version` prints the program's own version without a server.",
	.arguments = no_arguments,
	.run = run_version,
};
