/* SPDX-License-Identifier: MIT */
/*
 * One step's parameters and answer. Cutoffs go as 64-bit microseconds; those of phases with
 * units of their own are taken from the cycle's one clock.
 */
#include "step.h"

#include <string.h>

#include "context.h"

#define US_PER_DAY 86400000000LL
#define COUNT_MOST 1000000000000LL

/* clock - days; off where no timestamp reaches that far back. */
static int64_t days_before(int64_t clock_us, int64_t days)
{
	if (clock_us == QRET_CUTOFF_OFF || days > INT64_MAX / US_PER_DAY)
		return QRET_CUTOFF_OFF;
	return clock_us - days * US_PER_DAY;
}

/* The step functions to call: the second ones where they are installed and wanted. */
static bool use_second(const struct qret_ctx *ctx, enum fact installed, const struct work *work)
{
	return ctx->facts.is[installed] &&
	       context_number(ctx, OPTION_STEP_VERSION) != STEP_VERSION_1 && !work->lock_first;
}

const char *step_bind_retention(struct qret_ctx *ctx, const struct work *work, int32_t rows,
                                bool guarded, struct parameters *parameters)
{
	parameter_uuid(parameters, work->item.partition_id);
	parameter_timestamp(parameters, work->item.all_cutoff_us);
	parameter_timestamp(parameters, work->item.completed_cutoff_us);
	parameter_int4(parameters, rows);
	parameter_bool(parameters, guarded);
	return context_statement(ctx, use_second(ctx, FACT_RETENTION_V2, work)
	                                      ? STATEMENT_STEP_RETENTION_V2
	                                      : STATEMENT_STEP_RETENTION_V1);
}

static void bind_one_cutoff(const struct work *work, int64_t cutoff_us, int32_t rows, bool guarded,
                            struct parameters *parameters)
{
	parameter_uuid(parameters, work->item.partition_id);
	parameter_timestamp(parameters, cutoff_us);
	parameter_int4(parameters, rows);
	parameter_bool(parameters, guarded);
}

const char *step_bind_txns_purge(struct qret_ctx *ctx, const struct work *work, int32_t rows,
                                 bool guarded, struct parameters *parameters)
{
	bind_one_cutoff(work, work->item.txns_cutoff_us, rows, guarded, parameters);
	return context_statement(ctx, use_second(ctx, FACT_TXNS_PURGE_V2, work)
	                                      ? STATEMENT_STEP_TXNS_V2
	                                      : STATEMENT_STEP_TXNS_V1);
}

const char *step_bind_max_wait(struct qret_ctx *ctx, const struct work *work, int32_t rows,
                               bool guarded, struct parameters *parameters)
{
	bind_one_cutoff(work, work->item.max_wait_cutoff_us, rows, guarded, parameters);
	return context_statement(ctx, use_second(ctx, FACT_MAX_WAIT_V2, work)
	                                      ? STATEMENT_STEP_MAX_WAIT_V2
	                                      : STATEMENT_STEP_MAX_WAIT_V1);
}

const char *step_bind_cleanup(struct qret_ctx *ctx, const struct work *work, int32_t rows,
                              bool guarded, struct parameters *parameters)
{
	const struct phase_state *state = &ctx->phases[QRET_PHASE_PARTITION_CLEANUP - 1];
	bool second = use_second(ctx, FACT_CLEANUP_V2, work);

	(void)guarded;
	parameter_timestamp(parameters,
	                    days_before(ctx->cycle.clock_us,
	                                context_number(ctx, OPTION_PARTITION_CLEANUP_DAYS)));
	parameter_int4(parameters, rows);
	if (second)
		parameter_uuid(parameters, state->has_cursor ? state->cursor_uuid : NULL);
	return context_statement(ctx,
	                         second ? STATEMENT_STEP_CLEANUP_V2 : STATEMENT_STEP_CLEANUP_V1);
}

const char *step_bind_metrics_purge(struct qret_ctx *ctx, const struct work *work, int32_t rows,
                                    bool guarded, struct parameters *parameters)
{
	(void)guarded;
	parameter_timestamp(parameters,
	                    days_before(ctx->cycle.clock_us,
	                                context_number(ctx, OPTION_METRICS_RETENTION_DAYS)));
	parameter_int4(parameters, rows);
	return ctx->statements.metrics[work->unit];
}

const char *step_bind_event_prune(struct qret_ctx *ctx, const struct work *work, int32_t rows,
                                  bool guarded, struct parameters *parameters)
{
	(void)guarded;
	parameter_text(parameters, step_event_arm(work->unit));
	parameter_timestamp(parameters, ctx->cycle.clock_us);
	parameter_int8(parameters,
	               context_number(ctx, OPTION_EVENT_RETENTION_DAYS) * (US_PER_DAY / 1000000));
	parameter_int4(parameters, rows);
	parameter_text(parameters, phase_prune_after(ctx, work->unit));
	parameter_int4(parameters, phase_prune_events(ctx));
	return context_statement(ctx, STATEMENT_EVENT_PRUNE_STEP);
}

/* A count, within what sums of many of them can hold: the functions may be a host's. */
static int64_t count_of(const struct pg_result *result, int column)
{
	int64_t count = result_integer(result, 0, column, 0);

	return count < 0 ? 0 : count < COUNT_MOST ? count : COUNT_MOST;
}

void step_read_partition(const struct pg_result *result, int32_t rows, struct outcome *ret_outcome)
{
	(void)rows;
	ret_outcome->deleted = count_of(result, 0);
	ret_outcome->messages = count_of(result, 1);
	ret_outcome->watermark = result_integer(result, 0, 2, -1);
	ret_outcome->done = result_bool(result, 0, 3);
	ret_outcome->elapsed_us = result_integer(result, 0, 4, 0);
	ret_outcome->refused = result_bool(result, 0, 5);
}

void step_read_cleanup(const struct pg_result *result, int32_t rows, struct outcome *ret_outcome)
{
	(void)rows;
	ret_outcome->deleted = count_of(result, 0);
	ret_outcome->done = result_bool(result, 0, 1);
	ret_outcome->elapsed_us = result_integer(result, 0, 2, 0);
	ret_outcome->has_cursor = result_uuid(result, 0, 3, ret_outcome->cursor_uuid);
	ret_outcome->skipped = count_of(result, 4);
	if (result_uuid(result, 0, 6, ret_outcome->orphan_uuid))
		ret_outcome->orphans = count_of(result, 5);
	ret_outcome->failed = count_of(result, 7);
	result_text(result, 0, 8, ret_outcome->failure, sizeof(ret_outcome->failure));
}

void step_read_metrics_purge(const struct pg_result *result, int32_t rows,
                             struct outcome *ret_outcome)
{
	ret_outcome->deleted = count_of(result, 0);
	ret_outcome->elapsed_us = result_integer(result, 0, 1, 0);
	ret_outcome->done = ret_outcome->deleted < rows;
}

void step_read_event_prune(const struct pg_result *result, int32_t rows,
                           struct outcome *ret_outcome)
{
	(void)rows;
	ret_outcome->messages = count_of(result, 0);
	ret_outcome->deliveries = count_of(result, 1);
	ret_outcome->deleted = ret_outcome->messages + ret_outcome->deliveries;
	ret_outcome->skipped = count_of(result, 2);
	ret_outcome->oversize = count_of(result, 3);
	ret_outcome->poison = count_of(result, 4);
	ret_outcome->has_cursor = !result_is_null(result, 0, 5);
	result_text(result, 0, 5, ret_outcome->cursor, sizeof(ret_outcome->cursor));
	ret_outcome->done = result_bool(result, 0, 6);
	ret_outcome->elapsed_us = result_integer(result, 0, 7, 0);
	ret_outcome->failed = count_of(result, 8);
	ret_outcome->waits = count_of(result, 10);
	result_text(result, 0, 9, ret_outcome->failure, sizeof(ret_outcome->failure));
}

const char *step_metrics_table(uint32_t unit)
{
	return metrics_tables[unit].table;
}

const char *step_event_arm(uint32_t unit)
{
	static const char *const arms[EVENT_ARMS] = { "succeeded", "settled", "own_window",
		                                      "default_window" };

	return arms[unit];
}
