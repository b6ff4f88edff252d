/* SPDX-License-Identifier: MIT */
/* qretention step: bounded steps of one phase by hand, each one transaction. */
#include "driver.h"
#include "text.h"

#include <stdlib.h>
#include <string.h>

struct step_settings {
	const char *partition;
	int until_done;
};

/* What the steps of one command did together. */
struct step_run {
	struct driver *driver;
	const struct step_settings *settings;
	int32_t phase;
	int outcome; /* DONE, or PARTIAL once a step was */
	int64_t steps, rows, messages;
};

static const struct argument step_arguments[] = {
	{ .letter = 'p',
	  .name = "partition",
	  .value_name = "UUID",
	  .help = "only this partition (phases 1 to 3)",
	  .kind = ARGUMENT_TEXT,
	  .offset = offsetof(struct step_settings, partition) },
	{ .name = "until-done",
	  .help = "repeat until nothing deletable is left, instead of one step each",
	  .kind = ARGUMENT_FLAG,
	  .offset = offsetof(struct step_settings, until_done) },
	{ 0 },
};

static const struct phase {
	int32_t number;
	const char *name;
	const char *whole; /* stands for the partition where the phase has none */
} phases[] = {
	{ QRET_PHASE_RETENTION, "retention", NULL },
	{ QRET_PHASE_TXNS_PURGE, "txns-purge", NULL },
	{ QRET_PHASE_MAX_WAIT, "max-wait", NULL },
	{ QRET_PHASE_PARTITION_CLEANUP, "partition-cleanup", "(all partitions)" },
	{ QRET_PHASE_METRICS_PURGE, "metrics-purge", "(metrics tables)" },
	{ QRET_PHASE_EVENT_PRUNE, "event-prune", "(outbox)" },
};

#define PHASE_COUNT (sizeof(phases) / sizeof(phases[0]))

/* By number or name; NULL if there is none such. */
static const struct phase *find_phase(const char *word)
{
	for (size_t i = 0; i < PHASE_COUNT; i++) {
		char number[2] = { (char)('0' + phases[i].number), '\0' };

		if (strcmp(word, phases[i].name) == 0 || strcmp(word, number) == 0)
			return &phases[i];
	}
	return NULL;
}

static void print_step(struct step_run *run, const char *partition, int outcome,
                       const struct qret_step_result *result)
{
	struct json json;

	if (!run->driver->settings.json) {
		if (run->steps == 1)
			output_step_head();
		output_step_row(partition, result);
		return;
	}
	output_json_begin(&json, "step");
	output_json_outcome(&json, outcome);
	json_integer(&json, "phase", run->phase);
	json_text(&json, "partition", partition[0] == '(' ? NULL : partition);
	json_integer(&json, "rows_deleted", result->rows_deleted);
	json_integer(&json, "messages_deleted", result->messages_deleted);
	if (result->watermark < 0)
		json_null(&json, "watermark");
	else
		json_integer(&json, "watermark", result->watermark);
	json_bool(&json, "done", result->done);
	json_integer(&json, "elapsed_us", result->elapsed_us);
	json_end(&json);
}

/* Steps one item, once or until it is done. Returns DONE, PARTIAL or what ends the command. */
static int step_item(struct step_run *run, const struct qret_work_item *item, const char *partition)
{
	struct qret_step_result result = { .size = sizeof(result) };

	for (;;) {
		int rc = qret_step(run->driver->ctx, run->phase, item, &result);

		if (rc != QRET_DONE && rc != QRET_PARTIAL)
			return rc;
		run->steps++;
		run->rows += result.rows_deleted;
		run->messages += result.messages_deleted;
		if (rc == QRET_PARTIAL)
			run->outcome = rc;
		print_step(run, partition, rc, &result);
		if (output_flush() < 0 || !run->settings->until_done || result.done ||
		    rc == QRET_PARTIAL || result.rows_deleted == 0)
			return rc;
	}
}

/* A partition that its queue's policy gives nothing to do in this phase needs no step. */
static int has_cutoff(int32_t phase, const struct qret_work_item *item)
{
	if (phase == QRET_PHASE_TXNS_PURGE)
		return item->txns_cutoff_us != QRET_CUTOFF_OFF;
	if (phase == QRET_PHASE_MAX_WAIT)
		return item->max_wait_cutoff_us != QRET_CUTOFF_OFF;
	return item->all_cutoff_us != QRET_CUTOFF_OFF ||
	       item->completed_cutoff_us != QRET_CUTOFF_OFF;
}

/* What a step that neither did its work nor missed a lock says. Returns the exit code. */
static int step_ended(const struct step_run *run, int rc)
{
	if (rc < 0)
		return failure_report_last(run->driver, "step", rc);
	if (rc != QRET_DONE && rc != QRET_PARTIAL)
		fprintf(stderr, "qretention: %s\n", outcome_meaning(rc));
	return outcome_exit_code(rc);
}

static int no_such_partition(const struct step_run *run)
{
	const struct failure failure = {
		.code = QRET_ERR_ARGUMENT,
		.message = "there is no such partition",
		.hint = "`qretention worklist --set work_list=scan` lists all of them",
	};

	return failure_report(run->driver, "step", &failure);
}

/* wanted: NULL for all of the list. Returns the exit code. */
static int step_list(struct step_run *run, const struct qret_worklist *list, const uint8_t *wanted)
{
	struct qret_work_item item = { .size = sizeof(item) };
	char id[TEXT_SMALL];
	int found = wanted == NULL;

	for (uint64_t i = 0; qret_worklist_get(list, i, &item) == QRET_DONE; i++) {
		int rc;

		if (wanted ? memcmp(item.partition_id, wanted, 16) != 0
		           : !has_cutoff(run->phase, &item))
			continue;
		found = 1;
		rc = step_item(run, &item, text_uuid(id, item.partition_id));
		if (rc != QRET_DONE && rc != QRET_PARTIAL)
			return step_ended(run, rc);
	}
	return found ? outcome_exit_code(run->outcome) : no_such_partition(run);
}

static int step_partitions(struct step_run *run)
{
	struct qret_worklist *list = NULL;
	uint8_t wanted[16];
	int rc;

	if (run->settings->partition && text_parse_uuid(run->settings->partition, wanted) < 0)
		return usage_error("step", "--partition takes a UUID, not \"%.40s\"",
		                   run->settings->partition);
	/* One that is asked for by id is stepped whether or not it is due. */
	if (run->settings->partition) {
		rc = driver_set_unless_given(run->driver, "work_list", "scan");
		if (rc != 0)
			return rc;
	}
	rc = qret_worklist_build(run->driver->ctx, &list);
	if (rc != QRET_DONE)
		return step_ended(run, rc);
	rc = step_list(run, list, run->settings->partition ? wanted : NULL);
	qret_worklist_free(list);
	return rc;
}

static void print_total(const struct step_run *run)
{
	char steps[TEXT_SMALL], rows[TEXT_SMALL], messages[TEXT_SMALL];

	if (run->driver->settings.json)
		return;
	printf("%s step%s: %s rows, %s messages deleted\n", text_count(steps, run->steps),
	       run->steps == 1 ? "" : "s", text_count(rows, run->rows),
	       text_count(messages, run->messages));
}

/* Steps are safe beside each other: no gate is taken for them, and a lease would not outlast them. */
static int set_gate(struct driver *driver)
{
	int rc = driver_set_unless_given(driver, "gate", "none");
	char *gate = driver_get(driver, "gate");
	int is_lease = gate != NULL && strcmp(gate, "lease") == 0;

	free(gate);
	if (rc == 0 && is_lease)
		return usage_error("step", "steps by hand hold no lease: --set gate=none");
	return rc;
}

static int run_step(struct driver *driver, const void *settings, const struct argument_list *words)
{
	struct step_run run = { .driver = driver, .settings = settings };
	const struct phase *phase = words->count ? find_phase(words->items[0]) : NULL;
	int code;

	if (words->count == 0)
		return usage_error("step", "name a phase, by its number or name");
	if (phase == NULL)
		return usage_error("step",
		                   "there is no phase \"%.40s\": they are 1 to 6, or their names",
		                   words->items[0]);
	run.phase = phase->number;
	if (phase->whole && run.settings->partition)
		return usage_error("step", "this phase works on no single partition");
	code = set_gate(driver);
	if (code != 0)
		return code;
	if (phase->whole)
		code = step_ended(&run, step_item(&run, NULL, phase->whole));
	else
		code = step_partitions(&run);
	if (run.steps > 0 || code == 0)
		print_total(&run);
	return code;
}

const struct command command_step = {
	.name = "step",
	.words = "PHASE",
	.summary = "run single steps of one phase by hand",
	.description =
		"Runs one bounded step, each a transaction of its own, on every partition that the "
		"work list names, or on one with --partition. PHASE is a number or a name:\n"
		"1 retention: segments past their queue's windows\n"
		"2 txns-purge: hashes that no duplicate can meet any more\n"
		"3 max-wait: segments that waited too long, read or not\n"
		"4 partition-cleanup: empty partitions, a batch of all\n"
		"5 metrics-purge: old rows of the metrics tables, a batch\n"
		"6 event-prune: events of the outbox, a batch\n\n"
		"Steps are safe beside a running cycle. A step whose lock somebody held deletes "
		"nothing; the exit code is then 5.",
	.arguments = step_arguments,
	.settings_size = sizeof(struct step_settings),
	.most_words = 1,
	.run = run_step,
};
