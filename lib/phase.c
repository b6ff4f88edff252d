/* SPDX-License-Identifier: MIT */
/* The phase table. A new phase is a row here, its step in step.c, and its SQL. */
#include "phase.h"

#include <string.h>

#include "clock.h"
#include "context.h"
#include "step.h"
#include "text.h"

#define CLEANUP_INTERVAL_MS 60000
#define RUNS_FROM_START     10 /* one of so many looks from the start */
#define SLOW_LOOK_US        50000
#define PRUNE_EVENTS_MOST   500 /* the functions take no more in one step */
#define BARREN_MOST         20
#define FIRST_BARREN_US     (60 * US_PER_SECOND)

/*
 * Sub-cadence: true, and stamped, if the phase's time has come. Stamped before it runs, so that
 * a failure waits as long as a success.
 */
static bool due_now(struct phase_state *state, int64_t interval_ms)
{
	int64_t now_us = qret_now_us();

	if (now_us < state->next_us)
		return false;
	state->next_us = clock_after_ms(now_us, interval_ms);
	return true;
}

static bool begin_cleanup(struct qret_ctx *ctx)
{
	return context_number(ctx, OPTION_PARTITION_CLEANUP) &&
	       due_now(&ctx->phases[QRET_PHASE_PARTITION_CLEANUP - 1], CLEANUP_INTERVAL_MS);
}

void phase_stamp_event_prune(struct qret_ctx *ctx)
{
	ctx->phases[QRET_PHASE_EVENT_PRUNE - 1].next_us =
		clock_after_ms(qret_now_us(), context_number(ctx, OPTION_EVENT_PRUNE_INTERVAL_MS));
}

int32_t phase_prune_events(const struct qret_ctx *ctx)
{
	int64_t limit = context_number(ctx, OPTION_EVENT_PRUNE_LIMIT);
	int64_t left = limit - ctx->report.events_deleted;

	/* It bounds a cycle; a step by hand is none. */
	if (limit == 0 || ctx->runner.single || left > PRUNE_EVENTS_MOST)
		return PRUNE_EVENTS_MOST;
	return left < 0 ? 0 : (int32_t)left;
}

bool phase_prune_unfinished(const struct qret_ctx *ctx)
{
	const struct phase_state *state = &ctx->phases[QRET_PHASE_EVENT_PRUNE - 1];

	return state->unit != 0 || state->has_cursor;
}

/*
 * A busy host defers the prune, but not for ever: overdue, it gets one step a cycle. So it does
 * when it is due and the cycle was ended by what came before it, budget or failure.
 */
static bool begin_event_prune(struct qret_ctx *ctx)
{
	struct phase_state *state = &ctx->phases[QRET_PHASE_EVENT_PRUNE - 1];
	int64_t interval_ms = context_number(ctx, OPTION_EVENT_PRUNE_INTERVAL_MS);
	int64_t most_ms = context_number(ctx, OPTION_EVENT_PRUNE_MAX_DEFER_MS);
	int64_t now_us = qret_now_us();

	state->one_step = ctx->cycle.late_prune;
	if (!context_number(ctx, OPTION_EVENT_PRUNE))
		return false;
	if (state->next_us == 0)
		state->next_us = clock_after_ms(now_us, interval_ms);
	if (now_us < state->next_us)
		return false;
	if (atomic_load(&ctx->busy)) {
		if (most_ms == 0 || now_us < clock_after_ms(state->next_us, most_ms))
			return false;
		state->one_step = true;
		log_plain(&ctx->log, LOG_SETTLED_LATE);
	}
	/* Of one step, the due time stays, so the next cycle takes its step as well. */
	if (!state->one_step) {
		phase_stamp_event_prune(ctx);
		state->prunes++;
	}
	return true;
}

static bool has_retention_cutoff(const struct qret_ctx *ctx, const struct work *work)
{
	(void)ctx;
	return work->item.all_cutoff_us != QRET_CUTOFF_OFF ||
	       work->item.completed_cutoff_us != QRET_CUTOFF_OFF;
}

static bool has_txns_cutoff(const struct qret_ctx *ctx, const struct work *work)
{
	(void)ctx;
	return work->item.txns_cutoff_us != QRET_CUTOFF_OFF;
}

static bool has_max_wait_cutoff(const struct qret_ctx *ctx, const struct work *work)
{
	(void)ctx;
	return work->item.max_wait_cutoff_us != QRET_CUTOFF_OFF;
}

static void count_retention(struct qret_cycle_report *report, const struct work *work,
                            const struct outcome *outcome)
{
	(void)work;
	report->segments_deleted += outcome->deleted;
	report->messages_deleted += outcome->messages;
}

static void count_txns_purge(struct qret_cycle_report *report, const struct work *work,
                             const struct outcome *outcome)
{
	(void)work;
	report->txns_purged += outcome->deleted;
}

static void count_max_wait(struct qret_cycle_report *report, const struct work *work,
                           const struct outcome *outcome)
{
	(void)work;
	report->max_wait_evicted += outcome->deleted;
	report->messages_deleted += outcome->messages;
}

static void count_cleanup(struct qret_cycle_report *report, const struct work *work,
                          const struct outcome *outcome)
{
	(void)work;
	report->partitions_deleted += outcome->deleted;
	report->items_locked += outcome->skipped;
}

static void count_metrics_purge(struct qret_cycle_report *report, const struct work *work,
                                const struct outcome *outcome)
{
	(void)work;
	report->metrics_purged += outcome->deleted;
}

static void count_event_prune(struct qret_cycle_report *report, const struct work *work,
                              const struct outcome *outcome)
{
	int64_t *const arms[EVENT_ARMS] = { &report->events_succeeded, &report->events_settled,
		                            &report->events_own_window,
		                            &report->events_default_window };

	*arms[work->unit] += outcome->messages;
	report->events_deleted += outcome->messages;
	report->deliveries_deleted += outcome->deliveries;
	report->items_locked += outcome->skipped;
	report->events_oversize += outcome->oversize;
	report->rows_poison += outcome->poison;
}

_Static_assert(METRICS_TABLES <= UNITS_MOST && EVENT_ARMS <= UNITS_MOST,
               "a cycle has no room for the units");

static const struct phase phases[PHASE_COUNT] = {
	{ QRET_PHASE_RETENTION, "retention", ENGINES_LOG, 0, true, false, FAILURE_PARTIAL,
	  LOG_ITEM_FAILED, NULL, has_retention_cutoff, step_bind_retention, step_read_partition,
	  count_retention },
	{ QRET_PHASE_TXNS_PURGE, "txns_purge", ENGINES_LOG, 0, true, false, FAILURE_PARTIAL,
	  LOG_ITEM_FAILED, NULL, has_txns_cutoff, step_bind_txns_purge, step_read_partition,
	  count_txns_purge },
	{ QRET_PHASE_MAX_WAIT, "max_wait", ENGINES_LOG, 0, true, false, FAILURE_PARTIAL,
	  LOG_ITEM_FAILED, NULL, has_max_wait_cutoff, step_bind_max_wait, step_read_partition,
	  count_max_wait },
	{ QRET_PHASE_PARTITION_CLEANUP, "partition_cleanup", ENGINES_LOG, 1, false, true,
	  FAILURE_PARTIAL, LOG_ITEM_FAILED, begin_cleanup, NULL, step_bind_cleanup,
	  step_read_cleanup, count_cleanup },
	{ QRET_PHASE_METRICS_PURGE, "metrics_purge", ENGINES_LOG, METRICS_TABLES, false, false,
	  FAILURE_LOGGED, LOG_METRICS_PURGE_ERROR, NULL, NULL, step_bind_metrics_purge,
	  step_read_metrics_purge, count_metrics_purge },
	{ QRET_PHASE_EVENT_PRUNE, "event_prune", ENGINES_EVENT, EVENT_ARMS, false, true,
	  FAILURE_PARTIAL, LOG_EVENT_PRUNE_ERROR, begin_event_prune, NULL, step_bind_event_prune,
	  step_read_event_prune, count_event_prune },
};

const struct phase *phase_find(int32_t id)
{
	return id < 1 || id > PHASE_COUNT ? NULL : &phases[id - 1];
}

bool phase_enabled(const struct qret_ctx *ctx, const struct phase *phase)
{
	int64_t engines = context_number(ctx, OPTION_ENGINES);

	return engines == ENGINES_BOTH || engines == phase->engine;
}

/* A session's first steps take long for reasons of their own. */
static void keep_hint(struct phase_state *state, uint32_t arm, const struct outcome *outcome)
{
	bool slow = outcome->deleted == 0 && outcome->elapsed_us >= SLOW_LOOK_US &&
	            state->runs[arm] > 1;

	text_copy(state->hints[arm], CURSOR_BYTES, state->hinted || slow ? outcome->cursor : "");
}

/* Followed from a step that was refused everything until one deletes something, or there is no more. */
static void keep_resume(struct phase_state *state, uint32_t arm, const struct outcome *outcome)
{
	bool vain = outcome->failed + outcome->waits > 0;
	bool stands = state->has_cursor && strcmp(state->cursor, outcome->cursor) == 0;

	if (outcome->done || outcome->deleted > 0 || (vain && stands))
		state->resume[arm][0] = '\0';
	else if (vain || state->resume[arm][0] != '\0')
		text_copy(state->resume[arm], CURSOR_BYTES, outcome->cursor);
}

void phase_keep_cursor(struct qret_ctx *ctx, const struct phase *phase, const struct work *work,
                       const struct outcome *outcome)
{
	struct phase_state *state = &ctx->phases[phase->id - 1];

	if (phase->id == QRET_PHASE_EVENT_PRUNE) {
		keep_resume(state, work->unit, outcome);
		if (outcome->done)
			keep_hint(state, work->unit, outcome);
	}
	state->has_cursor = outcome->has_cursor && !outcome->done;
	memcpy(state->cursor, outcome->cursor, sizeof(state->cursor));
	memcpy(state->cursor_uuid, outcome->cursor_uuid, sizeof(state->cursor_uuid));
}

const char *phase_prune_after(struct qret_ctx *ctx, uint32_t arm)
{
	struct phase_state *state = &ctx->phases[QRET_PHASE_EVENT_PRUNE - 1];

	if (state->has_cursor)
		return state->cursor;
	if (state->resume[arm][0] != '\0') {
		state->hinted = state->hints[arm][0] != '\0';
		state->has_cursor = true;
		text_copy(state->cursor, CURSOR_BYTES, state->resume[arm]);
		return state->cursor;
	}
	state->hinted = state->runs[arm]++ % RUNS_FROM_START != 0 && state->hints[arm][0] != '\0';
	return state->hinted ? state->hints[arm] : NULL;
}

void phase_reset_cursor(struct qret_ctx *ctx, const struct phase *phase)
{
	ctx->phases[phase->id - 1].has_cursor = false;
}

bool phase_prune_tired(const struct qret_ctx *ctx, const struct work *work)
{
	const struct phase_state *state = &ctx->phases[QRET_PHASE_EVENT_PRUNE - 1];

	if (work->barren < BARREN_MOST)
		return false;
	return state->prunes > 1 || qret_now_us() >= ctx->runner.begun_us + FIRST_BARREN_US;
}

/* A step that had nothing to try, since all it looked at was owed, says nothing either way. */
void phase_count_barren(struct work *work, const struct outcome *outcome)
{
	if (outcome->deleted > 0)
		work->barren = 0;
	else if (outcome->failed + outcome->waits > 0)
		work->barren++;
}

const char *phase_unit(const struct phase *phase, uint32_t unit)
{
	return phase->engine == ENGINES_EVENT ? step_event_arm(unit) : step_metrics_table(unit);
}

int32_t phase_rows(const struct qret_ctx *ctx, const struct phase *phase)
{
	return (int32_t)context_number(ctx, phase->engine == ENGINES_EVENT ? OPTION_EVENT_BATCH_ROWS
	                                                                   : OPTION_BATCH_SIZE);
}

const char *phase_missing_function(const struct qret_ctx *ctx, const struct phase *phase)
{
	static const struct {
		enum fact first, second;
		const char *name;
	} functions[PHASE_COUNT] = {
		{ FACT_RETENTION_V1, FACT_RETENTION_V2, "log_retention_step" },
		{ FACT_TXNS_PURGE_V1, FACT_TXNS_PURGE_V2, "log_txns_purge_step" },
		{ FACT_MAX_WAIT_V1, FACT_MAX_WAIT_V2, "log_evict_max_wait_step" },
		{ FACT_CLEANUP_V1, FACT_CLEANUP_V2, "log_partition_cleanup_step" },
		{ FACT_COUNT, FACT_COUNT, NULL }, /* the metrics purge calls no function */
		{ FACT_EVENT_FUNCTIONS, FACT_COUNT, "event_prune_step" },
	};
	const enum fact first = functions[phase->id - 1].first,
			second = functions[phase->id - 1].second;
	int64_t version = context_number(ctx, OPTION_STEP_VERSION);
	bool has_first = first != FACT_COUNT && ctx->facts.is[first];
	bool has_second = second != FACT_COUNT && ctx->facts.is[second];

	if (functions[phase->id - 1].name == NULL)
		return NULL;
	if (second == FACT_COUNT)
		return has_first ? NULL : functions[phase->id - 1].name;
	if (version == STEP_VERSION_2   ? has_second
	    : version == STEP_VERSION_1 ? has_first
	                                : has_first || has_second)
		return NULL;
	return functions[phase->id - 1].name;
}
