/* SPDX-License-Identifier: MIT */
/* qretention worklist: the partitions that the next cycle would look at, with their cutoffs. */
#include "driver.h"
#include "text.h"

struct worklist_settings {
	struct argument_integer limit;
};

static const struct argument worklist_arguments[] = {
	{ .name = "limit",
	  .value_name = "N",
	  .help = "list at most N partitions (option worklist_limit)",
	  .kind = ARGUMENT_INTEGER,
	  .offset = offsetof(struct worklist_settings, limit),
	  .minimum = 1,
	  .maximum = INT64_MAX },
	{ 0 },
};

static void json_cutoff(struct json *json, const char *key, int64_t cutoff_us)
{
	if (cutoff_us == QRET_CUTOFF_OFF)
		json_null(json, key);
	else
		json_integer(json, key, cutoff_us);
}

static void print_item_json(const struct qret_work_item *item)
{
	struct json json;
	char id[TEXT_SMALL];

	output_json_begin(&json, "worklist");
	json_text(&json, "partition", text_uuid(id, item->partition_id));
	json_text(&json, "queue", text_uuid(id, item->queue_id));
	json_cutoff(&json, "all_cutoff_us", item->all_cutoff_us);
	json_cutoff(&json, "completed_cutoff_us", item->completed_cutoff_us);
	json_cutoff(&json, "txns_cutoff_us", item->txns_cutoff_us);
	json_cutoff(&json, "max_wait_cutoff_us", item->max_wait_cutoff_us);
	json_end(&json);
}

static void print_total(const struct driver *driver, const struct qret_worklist *list)
{
	char number[TEXT_SMALL], clock[TEXT_SMALL];
	uint64_t count = qret_worklist_count(list);
	struct json json;

	if (!driver->settings.json) {
		printf("%s partition%s, clock %s\n", text_count(number, (int64_t)count),
		       count == 1 ? "" : "s", text_time(clock, qret_worklist_clock_us(list)));
		return;
	}
	output_json_begin(&json, "worklist");
	output_json_outcome(&json, QRET_DONE);
	json_integer(&json, "count", (int64_t)count);
	json_integer(&json, "clock_us", qret_worklist_clock_us(list));
	json_end(&json);
}

static int run_worklist(struct driver *driver, const void *data, const struct argument_list *words)
{
	const struct worklist_settings *settings = data;
	struct qret_work_item item = { .size = sizeof(item) };
	struct qret_worklist *list = NULL;
	int rc = 0;

	(void)words;
	if (settings->limit.given)
		rc = driver_set_integer(driver, "worklist_limit", settings->limit.value);
	if (rc != 0)
		return rc;
	rc = qret_worklist_build(driver->ctx, &list);
	if (rc != QRET_DONE)
		return failure_report_last(driver, "worklist", rc);
	if (!driver->settings.json && qret_worklist_count(list) > 0)
		output_worklist_head();
	for (uint64_t i = 0; qret_worklist_get(list, i, &item) == QRET_DONE; i++) {
		if (driver->settings.json)
			print_item_json(&item);
		else
			output_worklist_row(&item, qret_worklist_clock_us(list));
	}
	print_total(driver, list);
	qret_worklist_free(list);
	return outcome_exit_code(QRET_DONE);
}

const struct command command_worklist = {
	.name = "worklist",
	.summary = "list the partitions that a cycle would look at",
	.description =
		"Lists partitions with their rules as ages: a segment older than `all after` goes "
		"whoever has read it, one older than `consumed` once every group has, one older "
		"than `max wait` at any rate; a sidecar row goes at the age `sidecar`.\n\n"
		"With option work_list = due (the default where floors are installed) only "
		"partitions and rules with something to delete now are listed; with scan all are, "
		"and - stands for a rule that the queue's policy switches off.",
	.arguments = worklist_arguments,
	.settings_size = sizeof(struct worklist_settings),
	.run = run_worklist,
};
