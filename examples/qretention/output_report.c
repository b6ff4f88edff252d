/* SPDX-License-Identifier: MIT */
/*
 * A cycle's report for people: a paragraph for one cycle, a line for each cycle of a loop, and its
 * JSON. Counts that are zero are left out of the text, never out of the JSON.
 */
#include "driver.h"
#include "text.h"

#include <stddef.h>
#include <string.h>

#define LINE_INDENT 10

enum group { DELETED, LEFT };

/* What the texts name, in the order in which they do. */
static const struct count {
	size_t offset;
	enum group group;
	const char *one, *many;
} counts[] = {
	{ offsetof(struct qret_cycle_report, segments_deleted), DELETED, "segment", "segments" },
	{ offsetof(struct qret_cycle_report, max_wait_evicted), DELETED,
	  "segment past its max wait", "segments past their max wait" },
	{ offsetof(struct qret_cycle_report, messages_deleted), DELETED, "message in them",
	  "messages in them" },
	{ offsetof(struct qret_cycle_report, txns_purged), DELETED, "sidecar row", "sidecar rows" },
	{ offsetof(struct qret_cycle_report, partitions_deleted), DELETED, "empty partition",
	  "empty partitions" },
	{ offsetof(struct qret_cycle_report, metrics_purged), DELETED, "metrics row",
	  "metrics rows" },
	{ offsetof(struct qret_cycle_report, events_deleted), DELETED, "event", "events" },
	{ offsetof(struct qret_cycle_report, deliveries_deleted), DELETED, "delivery",
	  "deliveries" },
	{ offsetof(struct qret_cycle_report, items_pinned), LEFT, "partition held by a slow group",
	  "partitions held by a slow group" },
	{ offsetof(struct qret_cycle_report, items_locked), LEFT, "item that somebody had locked",
	  "items that somebody had locked" },
	{ offsetof(struct qret_cycle_report, items_failed), LEFT, "item whose step failed",
	  "items whose step failed" },
	{ offsetof(struct qret_cycle_report, rows_poison), LEFT, "event with an unusable time",
	  "events with an unusable time" },
};

#define COUNT_COUNT (sizeof(counts) / sizeof(counts[0]))

/* Every count of the JSON, under its field's name. */
#define FIELD(name)                                             \
	{                                                       \
#name, offsetof(struct qret_cycle_report, name) \
	}
static const struct {
	const char *name;
	size_t offset;
} fields[] = {
	FIELD(queues),           FIELD(partitions),           FIELD(steps),
	FIELD(segments_deleted), FIELD(messages_deleted),     FIELD(txns_purged),
	FIELD(max_wait_evicted), FIELD(partitions_deleted),   FIELD(metrics_purged),
	FIELD(events_deleted),   FIELD(deliveries_deleted),   FIELD(events_succeeded),
	FIELD(events_settled),   FIELD(events_own_window),    FIELD(events_default_window),
	FIELD(events_oversize),  FIELD(rows_poison),          FIELD(items_failed),
	FIELD(items_locked),     FIELD(items_pinned),         FIELD(round_trips),
	FIELD(elapsed_us),       FIELD(consecutive_failures),
};

static int64_t field(const struct qret_cycle_report *report, size_t offset)
{
	int64_t value;

	memcpy(&value, (const char *)report + offset, sizeof(value));
	return value;
}

static const char *label(const struct count *count, int64_t value)
{
	return value == 1 ? count->one : count->many;
}

static void print_group(const struct qret_cycle_report *report, enum group group, const char *title)
{
	char number[TEXT_SMALL];

	for (size_t i = 0; i < COUNT_COUNT; i++) {
		int64_t value = field(report, counts[i].offset);

		if (counts[i].group != group || value == 0)
			continue;
		printf("  %-8s %11s  %s\n", title, text_count(number, value),
		       label(&counts[i], value));
		title = "";
	}
}

static int has_any(const struct qret_cycle_report *report, enum group group)
{
	for (size_t i = 0; i < COUNT_COUNT; i++)
		if (counts[i].group == group && field(report, counts[i].offset) != 0)
			return 1;
	return 0;
}

static const char *plural(int64_t count)
{
	return count == 1 ? "" : "s";
}

static void print_head(const char *what, const struct qret_cycle_report *report)
{
	char elapsed[TEXT_SMALL], partitions[TEXT_SMALL], steps[TEXT_SMALL], trips[TEXT_SMALL];

	printf("%s %s in %s", what, outcome_name(report->outcome),
	       text_duration(elapsed, report->elapsed_us));
	printf(": %s partition visit%s, %s step%s, %s round trip%s\n",
	       text_count(partitions, report->partitions), plural(report->partitions),
	       text_count(steps, report->steps), plural(report->steps),
	       text_count(trips, report->round_trips), plural(report->round_trips));
}

/* The cycle ended before it looked for anything. */
static int did_nothing(int outcome)
{
	return outcome == QRET_BUSY || outcome == QRET_PAUSED || outcome == QRET_STANDBY;
}

void output_report(const char *what, const struct qret_cycle_report *report)
{
	char duration[TEXT_SMALL];

	if (did_nothing(report->outcome)) {
		printf("%s %s: %s\n", what, outcome_name(report->outcome),
		       outcome_meaning(report->outcome));
		return;
	}
	print_head(what, report);
	if (has_any(report, DELETED))
		print_group(report, DELETED, "deleted");
	else if (report->outcome == QRET_DONE)
		printf("  nothing was due\n");
	print_group(report, LEFT, "left");
	if (report->oldest_overdue_us > 0)
		printf("  the oldest row left is %s overdue\n",
		       text_duration(duration, report->oldest_overdue_us));
}

/* Joins the counts of a group to a sentence. */
static void join_counts(const struct qret_cycle_report *report, char *text, size_t size)
{
	char number[TEXT_SMALL];

	for (size_t i = 0; i < COUNT_COUNT; i++) {
		int64_t value = field(report, counts[i].offset);
		size_t used = strlen(text);

		if (value != 0)
			snprintf(text + used, size - used, ", %s %s", text_count(number, value),
			         label(&counts[i], value));
	}
}

void output_report_line(const struct qret_cycle_report *report, int idle_too)
{
	char text[1024], elapsed[TEXT_SMALL], clock[TEXT_SMALL];

	if (report->outcome == QRET_DONE && !has_any(report, DELETED) && !idle_too)
		return;
	snprintf(text, sizeof(text), "%s in %s", outcome_name(report->outcome),
	         text_duration(elapsed, report->elapsed_us));
	join_counts(report, text, sizeof(text));
	printf("%s ", report->clock_us ? text_time_of_day(clock, report->clock_us) : "--:--:--Z");
	text_wrap(stdout, text, LINE_INDENT, LINE_INDENT);
}

static void json_time(struct json *json, const char *key, int64_t us)
{
	char text[TEXT_SMALL];

	json_text(json, key, us ? text_time(text, us) : NULL);
}

void output_report_json(const char *command, const struct qret_cycle_report *report,
                        const struct failure *failure)
{
	struct json json;

	output_json_begin(&json, command);
	output_json_outcome(&json, report->outcome);
	json_time(&json, "clock", report->clock_us);
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		json_integer(&json, fields[i].name, field(report, fields[i].offset));
	json_time(&json, "last_success", report->last_success_us);
	json_integer(&json, "oldest_overdue_us", report->oldest_overdue_us);
	if (failure != NULL && (report->outcome < 0 || failure->message[0]))
		output_json_failure(&json, failure);
	json_end(&json);
}

static void print_arm(const char *arm, int64_t events, const char *meaning)
{
	char number[TEXT_SMALL];

	printf("  %-15s %11s  %s\n", arm, text_count(number, events), meaning);
}

static void print_exception(const char *what, int64_t count, const char *meaning)
{
	if (count > 0)
		print_arm(what, count, meaning);
}

void output_prune(const struct qret_cycle_report *report)
{
	char events[TEXT_SMALL], deliveries[TEXT_SMALL], elapsed[TEXT_SMALL];

	printf("prune %s in %s: %s events, %s deliveries deleted\n", outcome_name(report->outcome),
	       text_duration(elapsed, report->elapsed_us),
	       text_count(events, report->events_deleted),
	       text_count(deliveries, report->deliveries_deleted));
	print_arm("succeeded", report->events_succeeded, "every delivery succeeded or cancelled");
	print_arm("settled", report->events_settled, "nothing owed, dead letters included");
	print_arm("own window", report->events_own_window, "past the window of their own");
	print_arm("default window", report->events_default_window, "past the default window");
	print_exception("  oversize", report->events_oversize,
	                "lost their deliveries a chunk at a time");
	print_exception("locked", report->items_locked, "skipped: somebody was at work on them");
	print_exception("poison", report->rows_poison, "left alone: their time cannot be used");
}
