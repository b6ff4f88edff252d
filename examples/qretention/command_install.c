/* SPDX-License-Identifier: MIT */
/* qretention install: puts parts of the SQL into the database, or brings them up to date. */
#include "driver.h"

#include <string.h>

struct install_settings {
	int broker;
	int django;
	const char *event_table;
	const char *delivery_table;
	const char *success_table;
	const char *grant_role;
};

/* In this order whatever the command line's: the functions need the tables. */
static const char *const parts[] = { "broker", "log", "event" };

#define PART_COUNT (sizeof(parts) / sizeof(parts[0]))

static const struct argument install_arguments[] = {
	{ .name = "broker",
	  .help = "the broker's own tables too, where they are missing",
	  .kind = ARGUMENT_FLAG,
	  .offset = offsetof(struct install_settings, broker) },
	{ .name = "event-table",
	  .value_name = "RELATION",
	  .help = "the outbox's existing event table",
	  .kind = ARGUMENT_TEXT,
	  .offset = offsetof(struct install_settings, event_table) },
	{ .name = "delivery-table",
	  .value_name = "RELATION",
	  .help = "its delivery table",
	  .kind = ARGUMENT_TEXT,
	  .offset = offsetof(struct install_settings, delivery_table) },
	{ .name = "success-table",
	  .value_name = "RELATION",
	  .help = "its table of each receiver's last success",
	  .kind = ARGUMENT_TEXT,
	  .offset = offsetof(struct install_settings, success_table) },
	{ .name = "django",
	  .help = "the three tables of a django-domain-events database",
	  .kind = ARGUMENT_FLAG,
	  .offset = offsetof(struct install_settings, django) },
	{ .name = "grant-role",
	  .value_name = "ROLE",
	  .help = "grant ROLE what it needs to run retention (option grant_role)",
	  .kind = ARGUMENT_TEXT,
	  .offset = offsetof(struct install_settings, grant_role) },
	{ 0 },
};

static int names_tables(const struct install_settings *settings)
{
	return settings->django || settings->event_table || settings->delivery_table ||
	       settings->success_table;
}

/* Which parts to install: those named; else the event part if tables are named; else the log. */
static int choose_parts(const struct install_settings *settings, const struct argument_list *words,
                        int chosen[PART_COUNT])
{
	for (size_t i = 0; i < words->count; i++) {
		size_t part = 0;

		while (part < PART_COUNT && strcmp(words->items[i], parts[part]) != 0)
			part++;
		if (part == PART_COUNT)
			return usage_error(
				"install",
				"there is no part \"%.40s\": they are broker, log and event",
				words->items[i]);
		chosen[part] = 1;
	}
	if (settings->broker)
		chosen[0] = 1;
	if (words->count == 0)
		chosen[names_tables(settings) ? 2 : 1] = 1;
	if (names_tables(settings) && !chosen[2])
		return usage_error("install", "tables can be named only for the part event");
	return 0;
}

static int set_table(struct driver *driver, const char *option, const char *given,
                     const char *preset)
{
	const char *name = given ? given : preset;

	return name ? driver_set(driver, option, name) : 0;
}

static int configure(struct driver *driver, const struct install_settings *settings)
{
	int django = settings->django;
	int rc = set_table(driver, "event_table", settings->event_table,
	                   django ? "public.django_domain_events_eventrecord" : NULL);

	if (rc == 0)
		rc = set_table(driver, "delivery_table", settings->delivery_table,
		               django ? "public.django_domain_events_deliveryrecord" : NULL);
	if (rc == 0)
		rc = set_table(driver, "success_table", settings->success_table,
		               django ? "public.django_domain_events_receiverlastsuccess" : NULL);
	if (rc == 0 && settings->grant_role)
		rc = driver_set(driver, "grant_role", settings->grant_role);
	return rc;
}

static void print_part(struct driver *driver, const char *part, int32_t before, int32_t after)
{
	struct json json;

	if (driver->settings.json) {
		output_json_begin(&json, "install");
		output_json_outcome(&json, QRET_DONE);
		json_text(&json, "part", part);
		json_integer(&json, "version_before", before);
		json_integer(&json, "version", after);
		json_end(&json);
	} else if (before == 0) {
		printf("%s: installed, version %d\n", part, (int)after);
	} else if (before == after) {
		printf("%s: version %d, brought up to date\n", part, (int)after);
	} else {
		printf("%s: version %d, was %d\n", part, (int)after, (int)before);
	}
	output_flush();
}

static int install_part(struct driver *driver, const char *part)
{
	int32_t before = 0, after = 0;
	int rc = qret_schema_version(driver->ctx, part, &before);

	if (rc == QRET_DONE)
		rc = qret_schema_install(driver->ctx, part);
	if (rc == QRET_DONE)
		rc = qret_schema_version(driver->ctx, part, &after);
	if (rc != QRET_DONE)
		return failure_report_last(driver, "install", rc);
	print_part(driver, part, before, after);
	return 0;
}

static int run_install(struct driver *driver, const void *data, const struct argument_list *words)
{
	const struct install_settings *settings = data;
	int chosen[PART_COUNT] = { 0 };
	int rc = choose_parts(settings, words, chosen);

	if (rc == 0)
		rc = configure(driver, settings);
	for (size_t i = 0; rc == 0 && i < PART_COUNT; i++)
		if (chosen[i])
			rc = install_part(driver, parts[i]);
	return rc;
}

const struct command command_install = {
	.name = "install",
	.words = "[PART...]",
	.summary = "install the SQL, or bring it up to date",
	.description =
		"Installs the named parts: log (the functions that retain a segment log; what you "
		"get without naming one), event (an outbox and its functions), broker (the broker's "
		"own tables, where they are missing). Safe to repeat, and on a server under load: "
		"each statement commits by itself, under a lock timeout. A function that somebody "
		"else created is left alone.\n\n"
		"An outbox that exists already is named with the three table options, or with "
		"--django: then functions and missing indexes are added, and no table is altered.",
	.arguments = install_arguments,
	.settings_size = sizeof(struct install_settings),
	.most_words = PART_COUNT,
	.run = run_install,
};
