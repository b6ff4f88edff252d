/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include <ctype.h>
#include <stdio.h>

#include "metrics.h"

#define SERIES_MOST 64

static struct metrics tested;
static bool in_callback;

static struct {
	int kind, times;
	char name[96], phase[32];
	double value;
} seen[SERIES_MOST];
static int seen_count;

static void on_metric(void *user_data, const struct qret_metric *metric)
{
	int at = 0;

	ck_assert_ptr_eq(user_data, seen);
	ck_assert_uint_eq(metric->size, sizeof(*metric));
	ck_assert(in_callback);
	while (at < seen_count && (strcmp(seen[at].name, metric->name) != 0 ||
	                           strcmp(seen[at].phase, metric->phase) != 0))
		at++;
	ck_assert_int_lt(at, SERIES_MOST);
	if (at == seen_count)
		seen_count++;
	seen[at].kind = metric->kind;
	snprintf(seen[at].name, sizeof(seen[at].name), "%s", metric->name);
	snprintf(seen[at].phase, sizeof(seen[at].phase), "%s", metric->phase);
	seen[at].value = metric->value;
	seen[at].times++;
}

static void begin(void)
{
	memset(seen, 0, sizeof(seen));
	seen_count = 0;
	tested =
		(struct metrics){ .fn = on_metric, .user_data = seen, .in_callback = &in_callback };
}

static double value_of(const char *name)
{
	for (int i = 0; i < seen_count; i++) {
		if (strcmp(seen[i].name, name) == 0)
			return seen[i].value;
	}
	ck_abort_msg("%s was not told", name);
	return 0;
}

static uint32_t series(void)
{
	struct qret_metric metric = { .size = sizeof(metric) };
	uint32_t count = 0;

	while (qret_metric_get_info(count, &metric) == QRET_DONE)
		count++;
	return count;
}

START_TEST(metrics_table)
{
	struct qret_metric metric = { .size = sizeof(metric) };

	ck_assert_uint_gt(series(), 20);
	for (uint32_t i = 0; i < series(); i++) {
		ck_assert_int_eq(qret_metric_get_info(i, &metric), QRET_DONE);
		ck_assert_uint_eq(metric.size, sizeof(metric));
		ck_assert_int_eq(strncmp(metric.name, "qretention_", 11), 0);
		for (const char *at = metric.name; *at != '\0'; at++)
			ck_assert(islower((unsigned char)*at) || *at == '_');
		/* Prometheus: a counter, and nothing else, ends with _total. */
		ck_assert_int_eq(strlen(metric.name) > 6 &&
		                         strcmp(metric.name + strlen(metric.name) - 6, "_total") ==
		                                 0,
		                 metric.kind == QRET_METRIC_COUNTER);
		ck_assert_str_ne(metric.help, "");
		ck_assert_str_ne(metric.unit, "");
		ck_assert(metric.value == 0);
	}
	ck_assert_int_eq(qret_metric_get_info(series(), &metric), QRET_ERR_ARGUMENT);
	ck_assert_int_eq(qret_metric_get_info(0, NULL), QRET_ERR_ARGUMENT);
	metric.size = 8;
	ck_assert_int_eq(qret_metric_get_info(0, &metric), QRET_ERR_ARGUMENT);
}
END_TEST

/* A cycle tells every series but the histograms, each once; a step its own histogram. */
START_TEST(metrics_each_once)
{
	struct qret_cycle_report report = { .segments_deleted = 7,
		                            .elapsed_us = 1500000,
		                            .outcome = QRET_DONE };
	int histograms = 0;

	begin();
	for (int32_t phase = QRET_PHASE_RETENTION; phase <= QRET_PHASE_EVENT_PRUNE; phase++)
		metrics_step(&tested, phase, 250000);
	ck_assert_int_eq(seen_count, 6);
	for (int i = 0; i < seen_count; i++) {
		ck_assert_int_eq(seen[i].kind, QRET_METRIC_HISTOGRAM);
		ck_assert(seen[i].value == 0.25);
	}
	ck_assert_str_eq(seen[0].phase, "retention");
	ck_assert_str_eq(seen[5].phase, "event_prune");
	metrics_cycle(&tested, &report);
	ck_assert_int_eq(seen_count, (int)series());
	for (int i = 0; i < seen_count; i++) {
		histograms += seen[i].kind == QRET_METRIC_HISTOGRAM;
		ck_assert_int_eq(seen[i].times, 1);
	}
	ck_assert_int_eq(histograms, 6);
	ck_assert(value_of("qretention_segments_deleted_total") == 7);
	ck_assert(value_of("qretention_cycle_duration_seconds") == 1.5);
	ck_assert(!in_callback);
}
END_TEST

START_TEST(metrics_by_outcome)
{
	static const struct {
		int32_t outcome;
		double failed, skipped;
	} rows[] = {
		{ QRET_DONE, 0, 0 },    { QRET_PARTIAL, 0, 0 },
		{ QRET_BUDGET, 0, 0 },  { QRET_STOPPED, 0, 0 },
		{ QRET_BUSY, 0, 1 },    { QRET_STANDBY, 0, 1 },
		{ QRET_PAUSED, 0, 1 },  { QRET_ERR_CONNECTION, 1, 0 },
		{ QRET_ERR_SQL, 1, 0 }, { QRET_ERR_LEADER_LOST, 1, 0 },
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct qret_cycle_report report = { .outcome = rows[i].outcome };

		begin();
		metrics_cycle(&tested, &report);
		ck_assert(value_of("qretention_cycles_total") == 1);
		ck_assert(value_of("qretention_cycles_failed_total") == rows[i].failed);
		ck_assert(value_of("qretention_cycles_skipped_total") == rows[i].skipped);
	}
}
END_TEST

START_TEST(metrics_nobody_listens)
{
	struct qret_cycle_report report = { 0 };

	begin();
	tested.fn = NULL;
	metrics_step(&tested, QRET_PHASE_RETENTION, 1);
	metrics_cycle(&tested, &report);
	ck_assert_int_eq(seen_count, 0);
}
END_TEST

int main(void)
{
	const TTest *tests[] = { metrics_table, metrics_each_once, metrics_by_outcome,
		                 metrics_nobody_listens, NULL };

	return unit_run("metrics", tests);
}
