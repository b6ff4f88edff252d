/* SPDX-License-Identifier: MIT */
/* Metric series: told to the host's callback, kept nowhere. */
#ifndef QRET_LIB_METRICS_H
#define QRET_LIB_METRICS_H

#include <stdbool.h>
#include <stdint.h>

#include "qretention.h"

/* What is reported and else left alone. */
struct met {
	int64_t backed_off, future_heads;
	int64_t dead_rows, held_us;
	int64_t orphans, orphans_round; /* of the last whole clean-up round; of this one so far */
};

struct metrics {
	qret_metric_fn fn;
	void *user_data;
	qret_free_fn free_fn;
	bool *in_callback; /* the context's re-entrance mark */
	struct met met;
};

/* One step's duration, as a histogram sample. */
void metrics_step(struct metrics *metrics, int32_t phase, int64_t elapsed_us);

/* Every other series, once, from a finished cycle's report. */
void metrics_cycle(struct metrics *metrics, const struct qret_cycle_report *report);

#endif
