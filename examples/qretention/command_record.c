/* SPDX-License-Identifier: MIT */
/* qretention record: records an event by hand, so that an outbox can be tried without a host. */
#include "driver.h"

#include <libpq-fe.h>
#include <stdlib.h>
#include <string.h>

struct record_settings {
	const char *payload;
	struct argument_list receivers;
	const char *dedupe_key;
	struct argument_integer window;
	const char *delete_when;
	const char *suppress;
};

static const struct argument record_arguments[] = {
	{ .name = "payload",
	  .value_name = "JSON",
	  .help = "what the event carries ({})",
	  .kind = ARGUMENT_TEXT,
	  .offset = offsetof(struct record_settings, payload) },
	{ .letter = 'r',
	  .name = "receiver",
	  .value_name = "KEY",
	  .help = "a receiver that is owed a delivery; may be given again",
	  .kind = ARGUMENT_LIST,
	  .offset = offsetof(struct record_settings, receivers) },
	{ .name = "dedupe-key",
	  .value_name = "KEY",
	  .help = "refuse a second event with this key for as long as this one exists",
	  .kind = ARGUMENT_TEXT,
	  .offset = offsetof(struct record_settings, dedupe_key) },
	{ .name = "window",
	  .value_name = "SECONDS",
	  .help = "a retention window of its own",
	  .kind = ARGUMENT_INTEGER,
	  .offset = offsetof(struct record_settings, window),
	  .minimum = INT64_MIN,
	  .maximum = INT64_MAX },
	{ .name = "delete-when",
	  .value_name = "POLICY",
	  .help = "succeeded: delete it once every delivery succeeded or was cancelled; settled: "
	          "once every delivery is terminal, dead letters too",
	  .kind = ARGUMENT_TEXT,
	  .offset = offsetof(struct record_settings, delete_when) },
	{ .name = "suppress",
	  .value_name = "REASON",
	  .help = "record the event and owe it to nobody",
	  .kind = ARGUMENT_TEXT,
	  .offset = offsetof(struct record_settings, suppress) },
	{ 0 },
};

/* The list as the text of a text[]: {"a","b"}, on the heap. */
static char *array_text(const struct argument_list *list)
{
	size_t size = 3;
	char *text, *end;

	for (size_t i = 0; i < list->count; i++)
		size += 2 * strlen(list->items[i]) + 3;
	text = end = malloc(size);
	if (text == NULL)
		return NULL;
	*end++ = '{';
	for (size_t i = 0; i < list->count; i++) {
		if (i > 0)
			*end++ = ',';
		*end++ = '"';
		for (const char *at = list->items[i]; *at; at++) {
			if (*at == '"' || *at == '\\')
				*end++ = '\\';
			*end++ = *at;
		}
		*end++ = '"';
	}
	strcpy(end, "}");
	return text;
}

static int call_record(struct driver *driver, const struct record_settings *settings,
                       const char *name, PGresult **ret_rows, struct failure *ret_failure)
{
	char window[24];
	char *receivers = array_text(&settings->receivers);
	const char *values[] = {
		name,
		settings->payload ? settings->payload : "{}",
		receivers,
		settings->dedupe_key,
		settings->window.given ? window : NULL,
		settings->delete_when ? settings->delete_when : "",
		settings->suppress ? settings->suppress : "",
	};
	struct database_call call = {
		.columns = "*",
		.function = "record_event_v1",
		.arguments = "p_name => $1, p_payload => $2, p_receivers => $3, "
			     "p_dedupe_key => $4, p_retention_seconds => $5, "
			     "p_delete_when => $6, p_suppressed_reason => $7",
		.values = values,
		.value_count = 7,
	};
	int rc;

	if (receivers == NULL) {
		*ret_failure = (struct failure){ .code = QRET_ERR_NOMEM };
		return QRET_ERR_NOMEM;
	}
	snprintf(window, sizeof(window), "%lld", (long long)settings->window.value);
	rc = database_call(driver, &call, ret_rows, ret_failure);
	free(receivers);
	return rc;
}

static int run_record(struct driver *driver, const void *data, const struct argument_list *words)
{
	struct failure failure;
	struct json json;
	PGresult *rows = NULL;
	int rc;

	if (words->count == 0)
		return usage_error("record", "name the event");
	rc = call_record(driver, data, words->items[0], &rows, &failure);
	if (rc != QRET_DONE)
		return failure_report(driver, "record", &failure);
	if (driver->settings.json) {
		output_json_begin(&json, "record");
		output_json_outcome(&json, rc);
		json_raw(&json, "id", PQgetvalue(rows, 0, 0));
		json_end(&json);
	} else {
		printf("event %s recorded\n", PQgetvalue(rows, 0, 0));
	}
	PQclear(rows);
	return outcome_exit_code(rc);
}

const struct command command_record = {
	.name = "record",
	.words = "NAME",
	.summary = "record an event in the outbox",
	.description =
		"Records an event with a delivery owed to each receiver, in a transaction of its "
		"own. Its retention is copied to the row: without --window and --delete-when it is "
		"kept for the default window of whoever prunes. A host records its events in the "
		"transaction that caused them, with the same SQL function.",
	.arguments = record_arguments,
	.settings_size = sizeof(struct record_settings),
	.most_words = 1,
	.unconnected = 1,
	.run = run_record,
};
