/* SPDX-License-Identifier: MIT */
#include "script_world.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct world world;

static char answer[1 << 18];

const char *world_facts(bool second_steps)
{
	int length = snprintf(answer, sizeof(answer), "@%lld", (long long)WORLD_CLOCK_US);

	for (int fact = 0; fact < FACT_COUNT; fact++) {
		bool is = fact != FACT_READ_ONLY && (fact != FACT_FLOORS || world.floors) &&
		          fact != FACT_LEASE;

		if (fact == FACT_RETENTION_V2 || fact == FACT_TXNS_PURGE_V2 ||
		    fact == FACT_MAX_WAIT_V2 || fact == FACT_CLEANUP_V2)
			is = second_steps;
		length += snprintf(answer + length, sizeof(answer) - (size_t)length, " %c",
		                   is ? 't' : 'f');
	}
	snprintf(answer + length, sizeof(answer) - (size_t)length, " - - -");
	return answer;
}

int world_partition_of(const struct script_call *call)
{
	REQUIRE(call->parameters[0] == '#', "%s has no partition", call->statement);
	return atoi(call->parameters + 1);
}

int32_t world_rows_of(const struct script_call *call)
{
	const char *last = strrchr(call->parameters, ' ');

	/* ... rows guard */
	while (last[-1] != ' ')
		last--;
	return (int32_t)strtol(last, NULL, 10);
}

/* A page behind the partition that the parameters name. */
static const char *page(const struct script_call *call)
{
	const char *after = strchr(call->parameters, '#');
	int first = after == NULL ? 1 : atoi(after + 1) + 1, length = 0;
	const char *others = world.other_phases ? "@2 @3 @4" : "- - -";

	if (first > world.partitions)
		return "@1700000000000000 - - - - - -";
	for (int id = first; id <= world.partitions && id < first + PAGE_ITEMS; id++)
		length += snprintf(answer + length, sizeof(answer) - (size_t)length,
		                   "@%lld #%d #%d @1 %s/", (long long)WORLD_CLOCK_US, id,
		                   id % 10 + 1, others);
	return answer;
}

/* Partitions with something left that are not among those to leave out; then a row that has no partition. */
static const char *due_page(const struct script_call *call)
{
	static bool excluded[WORLD_PARTITIONS_MOST + 1];
	const char *at = strchr(call->parameters, '{');
	int length = 0, listed = 0;

	memset(excluded, 0, sizeof(excluded));
	while (at != NULL && *at != '}' && at[1] == '#') {
		excluded[strtol(at + 2, NULL, 10)] = true;
		at = strpbrk(at + 1, ",}");
	}
	for (int id = 1; id <= world.partitions && listed < PAGE_ITEMS; id++) {
		if (world.segments[id - 1] == 0 || excluded[id])
			continue;
		length += snprintf(answer + length, sizeof(answer) - (size_t)length,
		                   "@%lld #%d #%d @1 - - - #%d - - - - -/",
		                   (long long)WORLD_CLOCK_US, id, id % 10 + 1, id % 10 + 1);
		listed++;
	}
	snprintf(answer + length, sizeof(answer) - (size_t)length, "@%lld - - - - - - - - - - - -",
	         (long long)WORLD_CLOCK_US);
	return answer;
}

/* The page read again: every partition is still there, with its policy. */
static const char *page_again(void)
{
	int length = 0;

	for (int id = 1; id <= world.partitions && id <= PAGE_ITEMS; id++)
		length += snprintf(answer + length, sizeof(answer) - (size_t)length,
		                   "@%lld #%d #1 @1 - - -/", (long long)WORLD_CLOCK_US, id);
	return answer;
}

static const char *step(const struct script_call *call)
{
	int id = world_partition_of(call);
	int64_t rows = world_rows_of(call), *left = &world.segments[id - 1];
	int64_t taken = rows < *left ? rows : *left;

	*left -= taken;
	world.deleted += taken;
	snprintf(answer, sizeof(answer), "%" PRId64 " %" PRId64 " 7 %c %" PRId64 " f", taken,
	         10 * taken, *left == 0 ? 't' : 'f', taken * world.rows_us + 100);
	return answer;
}

static const char *respond(struct script_call *call)
{
	const char *name = call->statement;
	const char *own = world.before == NULL ? NULL : world.before(call);

	if (own != NULL)
		return own;
	if (strcmp(name, "facts") == 0)
		return world_facts(world.second_steps);
	if (strcmp(name, "worklist_scan") == 0)
		return page(call);
	if (strcmp(name, "worklist_by_id") == 0)
		return page_again();
	if (strcmp(name, "worklist_due") == 0)
		return due_page(call);
	if (strcmp(name, "floors_walk") == 0)
		return "- - - - f f 0 - 0";
	if (strcmp(name, "floors_pinned") == 0)
		return "- 0 -";
	if (strcmp(name, "floors_refresh") == 0 || strcmp(name, "other") == 0)
		return "";
	if (strncmp(name, "step_retention", 14) == 0)
		return step(call);
	if (strncmp(name, "step_txns", 9) == 0 || strncmp(name, "step_max_wait", 13) == 0)
		return "2 0 7 t 100 f";
	if (strncmp(name, "step_cleanup", 12) == 0)
		return "0 t 100 - 0 0 - 0 -";
	if (strcmp(name, "metrics_purge") == 0)
		return "0 100";
	if (strcmp(name, "event_prune_step") == 0)
		return "0 0 0 0 0 - t 100 0 -";
	if (strcmp(name, "gate_take") == 0 || strcmp(name, "gate_release") == 0)
		return "t";
	if (strcmp(name, "settings") == 0 || strcmp(name, "schema_version") == 0)
		return "1";
	if (strcmp(name, "begin") == 0 || strcmp(name, "commit") == 0 || strcmp(name, "set") == 0)
		return "";
	if (strcmp(name, "sign_of_life") == 0)
		return "t";
	if (strcmp(name, "install_object") == 0)
		return "'created";
	if (strcmp(name, "install_has_streams") == 0)
		return "0";
	return strcmp(name, "install_invalid_index") == 0 ? "" : NULL;
}

static void on_record(void *user_data, const struct qret_log_record *record)
{
	size_t length = strlen(world.log);

	(void)user_data;
	world.log_records++;
	REQUIRE(unit_is_utf8(record->text), "the world could not be set up");
	snprintf(world.log + length, sizeof(world.log) - length, "%s\n", record->text);
}

void world_script(int partitions, int64_t segments)
{
	memset(&world, 0, sizeof(world));
	script_begin();
	script_serve(respond);
	world.partitions = partitions;
	world.rows_us = 10;
	world.second_steps = true;
	for (int i = 0; i < partitions; i++)
		world.segments[i] = segments;
}

static void begin(int partitions, int64_t segments)
{
	world_script(partitions, segments);
	REQUIRE(qret_ctx_new(&world.ctx) == QRET_DONE, "the world could not be set up");
	REQUIRE(qret_set_log(world.ctx, QRET_LOG_DEBUG, on_record, NULL, NULL) == QRET_DONE,
	        "the world could not be set up");
	world_set("partition_cleanup", "off");
}

void world_begin(int partitions, int64_t segments)
{
	begin(partitions, segments);
	REQUIRE(qret_connect(world.ctx, "host=server user=u password=s3cret") == QRET_DONE,
	        "the world could not be set up");
}

void world_begin_scripted(const struct script_entry *entries, size_t count)
{
	world_begin(0, 0);
	script_serve(NULL);
	script_expect(entries, count);
}

void world_begin_attached(int partitions, int64_t segments)
{
	begin(partitions, segments);
	REQUIRE(qret_attach(world.ctx, script_host_connection()) == QRET_DONE,
	        "the world could not be set up");
}

void world_end(void)
{
	REQUIRE(strstr(world.log, "s3cret") == NULL, "the password was logged");
	qret_ctx_free(world.ctx);
	script_end();
}

void world_set(const char *option, const char *value)
{
	REQUIRE(qret_set_option(world.ctx, option, value) == QRET_DONE, "%s",
	        qret_error_message(world.ctx));
	script_option(option, value);
}

void world_set_silent(void)
{
	world_set("gate", "none");
	world_set("idle_limit_ms", "259200000");
}

int world_cycle(struct qret_cycle_report *ret_report)
{
	int rc;

	memset(ret_report, 0, sizeof(*ret_report));
	ret_report->size = sizeof(*ret_report);
	rc = qret_run_cycle(world.ctx, ret_report);
	REQUIRE(ret_report->outcome == rc, "the world could not be set up");
	return rc;
}

int64_t world_left(void)
{
	int64_t left = 0;

	for (int i = 0; i < world.partitions; i++)
		left += world.segments[i];
	return left;
}

int world_logged(const char *text)
{
	int times = 0;

	for (const char *at = strstr(world.log, text); at != NULL; at = strstr(at + 1, text))
		times++;
	return times;
}
