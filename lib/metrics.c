/* SPDX-License-Identifier: MIT */
/*
 * The metric table and its delivery. A report's counts are per cycle, so they are the increments
 * themselves.
 */
#include "metrics.h"

#include <stddef.h>

#include "clock.h"
#include "struct_size.h"

enum metric_id {
#define COUNTER(id, ...)   METRIC_##id,
#define GAUGE(id, ...)     METRIC_##id,
#define HISTOGRAM(id, ...) METRIC_##id,
#define EVENTS(id, ...)    METRIC_##id,
#define MET(id, ...)       METRIC_##id,
#include "metric_table.h"
#undef COUNTER
#undef GAUGE
#undef HISTOGRAM
#undef EVENTS
#undef MET
	METRIC_COUNT
};

#define NO_FIELD SIZE_MAX

static const struct {
	int32_t kind;
	const char *name, *unit, *phase, *help;
	size_t field; /* of the report */
	double divisor;
} rows[METRIC_COUNT] = {
#define COUNTER(id, name, unit, phase, field, help)                  \
	[METRIC_##id] = { QRET_METRIC_COUNTER,                       \
		          name,                                      \
		          unit,                                      \
		          phase,                                     \
		          help,                                      \
		          offsetof(struct qret_cycle_report, field), \
		          1 },
#define GAUGE(id, name, unit, phase, field, divisor, help)           \
	[METRIC_##id] = { QRET_METRIC_GAUGE,                         \
		          name,                                      \
		          unit,                                      \
		          phase,                                     \
		          help,                                      \
		          offsetof(struct qret_cycle_report, field), \
		          divisor },
#define HISTOGRAM(id, name, unit, phase, help) \
	[METRIC_##id] = { QRET_METRIC_HISTOGRAM, name, unit, phase, help, NO_FIELD, 1 },
#define EVENTS(id, name, unit, phase, help) \
	[METRIC_##id] = { QRET_METRIC_COUNTER, name, unit, phase, help, NO_FIELD, 1 },
#define MET(id, name, unit, phase, help) \
	[METRIC_##id] = { QRET_METRIC_GAUGE, name, unit, phase, help, NO_FIELD, 1 },
#include "metric_table.h"
};

static struct qret_metric describe(enum metric_id id)
{
	struct qret_metric metric = { 0 };

	metric.size = sizeof(metric);
	metric.kind = rows[id].kind;
	metric.name = rows[id].name;
	metric.unit = rows[id].unit;
	metric.help = rows[id].help;
	metric.phase = rows[id].phase;
	return metric;
}

static void deliver(struct metrics *metrics, enum metric_id id, double value)
{
	struct qret_metric metric = describe(id);

	metric.value = value;
	*metrics->in_callback = true;
	metrics->fn(metrics->user_data, &metric);
	*metrics->in_callback = false;
}

void metrics_step(struct metrics *metrics, int32_t phase, int64_t elapsed_us)
{
	if (metrics->fn != NULL)
		deliver(metrics,
		        (enum metric_id)(METRIC_STEP_RETENTION + (phase - QRET_PHASE_RETENTION)),
		        (double)elapsed_us / US_PER_SECOND);
}

/* Series that no field of the report holds. */
static double beside_report(const struct metrics *metrics, enum metric_id id, int32_t outcome)
{
	switch (id) {
	case METRIC_BACKED_OFF:
		return (double)metrics->met.backed_off;
	case METRIC_FUTURE_HEADS:
		return (double)metrics->met.future_heads;
	case METRIC_ORPHANS:
		return (double)metrics->met.orphans;
	case METRIC_DEAD_ROWS:
		return (double)metrics->met.dead_rows;
	case METRIC_HELD_SNAPSHOT:
		return (double)metrics->met.held_us / US_PER_SECOND;
	case METRIC_CYCLES:
		return 1;
	case METRIC_CYCLES_FAILED:
		return outcome < 0;
	default:
		return outcome == QRET_BUSY || outcome == QRET_STANDBY || outcome == QRET_PAUSED;
	}
}

void metrics_cycle(struct metrics *metrics, const struct qret_cycle_report *report)
{
	for (enum metric_id id = 0; id < METRIC_COUNT && metrics->fn != NULL; id++) {
		if (rows[id].kind == QRET_METRIC_HISTOGRAM)
			continue;
		if (rows[id].field == NO_FIELD)
			deliver(metrics, id, beside_report(metrics, id, report->outcome));
		else
			deliver(metrics, id,
			        (double)*(const int64_t *)((const char *)report + rows[id].field) /
			                rows[id].divisor);
	}
}

int qret_metric_get_info(uint32_t index, struct qret_metric *ret_metric)
{
	struct qret_metric metric;

	if (index >= METRIC_COUNT)
		return QRET_ERR_ARGUMENT;
	metric = describe((enum metric_id)index);
	return struct_write(ret_metric, &metric, sizeof(metric), sizeof(metric));
}
