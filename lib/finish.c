/* SPDX-License-Identifier: MIT */
/* Weighs errors, stop, budget and partial failures against each other, and reports. */
#include "finish.h"

#include "clock.h"
#include "context.h"

/* Precedence: error, STOPPED, BUDGET, PARTIAL, what was decided early, DONE. */
static int weigh(struct qret_ctx *ctx)
{
	const struct cycle *cycle = &ctx->cycle;

	if (cycle->error.code != QRET_DONE) {
		ctx->error = cycle->error;
		return cycle->error.code;
	}
	if (cycle->stopped)
		return QRET_STOPPED;
	if (cycle->budget)
		return QRET_BUDGET;
	if (cycle->partial) {
		ctx->error = cycle->first_failure;
		return QRET_PARTIAL;
	}
	return cycle->outcome;
}

static void line_counts(struct line *line, const struct qret_cycle_report *report)
{
	line_number(line, "queues", report->queues);
	line_number(line, "segments_deleted", report->segments_deleted);
	line_number(line, "messages_deleted", report->messages_deleted);
	line_number(line, "txns_purged", report->txns_purged);
	line_number(line, "max_wait_evicted", report->max_wait_evicted);
	line_number(line, "partitions_deleted", report->partitions_deleted);
	line_number(line, "metrics_purged", report->metrics_purged);
}

static void line_event_counts(struct line *line, const struct qret_cycle_report *report)
{
	line_number(line, "events_deleted", report->events_deleted);
	line_number(line, "deliveries_deleted", report->deliveries_deleted);
	line_number(line, "events_succeeded", report->events_succeeded);
	line_number(line, "events_settled", report->events_settled);
	line_number(line, "events_own_window", report->events_own_window);
	line_number(line, "events_default_window", report->events_default_window);
	line_number(line, "events_oversize", report->events_oversize);
	line_number(line, "rows_poison", report->rows_poison);
}

static bool deleted_something(const struct qret_cycle_report *report)
{
	return report->segments_deleted > 0 || report->txns_purged > 0 ||
	       report->max_wait_evicted > 0 || report->partitions_deleted > 0 ||
	       report->metrics_purged > 0 || report->events_deleted > 0 ||
	       report->deliveries_deleted > 0;
}

static void log_counts(struct qret_ctx *ctx, enum log_event event)
{
	struct line line;

	if (!log_wants(&ctx->log, event))
		return;
	log_begin(&line, event);
	if (context_number(ctx, OPTION_ENGINES) != ENGINES_EVENT)
		line_counts(&line, &ctx->report);
	if (context_number(ctx, OPTION_ENGINES) != ENGINES_LOG)
		line_event_counts(&line, &ctx->report);
	line_number(&line, "items_failed", ctx->report.items_failed);
	line_number(&line, "elapsed_ms", ctx->report.elapsed_us / US_PER_MS);
	log_end(&ctx->log, event, &line);
}

static void log_error(struct qret_ctx *ctx, int outcome)
{
	enum log_event event = outcome == QRET_ERR_LEADER_LOST ? LOG_LEADER_LOST : LOG_CYCLE_ERROR;
	struct line line;

	if (!log_wants(&ctx->log, event))
		return;
	log_begin(&line, event);
	line_text(&line, "error", qret_strerror(outcome));
	line_text(&line, "sqlstate", ctx->error.sqlstate);
	line_text(&line, "message", ctx->error.message);
	if (ctx->error.hint[0] != '\0')
		line_text(&line, "hint", ctx->error.hint);
	log_end(&ctx->log, event, &line);
}

static void log_outcome(struct qret_ctx *ctx, int outcome)
{
	if (deleted_something(&ctx->report))
		log_counts(ctx, LOG_SWEPT);
	switch (outcome) {
	case QRET_DONE:
	case QRET_PARTIAL:
		if (!deleted_something(&ctx->report))
			log_counts(ctx, LOG_IDLE);
		break;
	case QRET_BUSY:
		log_plain(&ctx->log, LOG_BUSY);
		break;
	case QRET_STOPPED:
		log_plain(&ctx->log, LOG_STOPPED);
		break;
	case QRET_BUDGET:
		log_plain(&ctx->log, LOG_BUDGET);
		break;
	case QRET_PAUSED:
		log_plain(&ctx->log, LOG_PAUSED);
		break;
	case QRET_STANDBY:
		if (!ctx->standby_told)
			log_plain(&ctx->log, LOG_STANDBY);
		break;
	default:
		log_error(ctx, outcome);
	}
	if (ctx->report.rows_poison > 0 && log_wants(&ctx->log, LOG_POISON))
		log_counts(ctx, LOG_POISON);
	ctx->standby_told = outcome == QRET_STANDBY;
}

static void fill_report(struct qret_ctx *ctx, int outcome, int64_t now_us)
{
	struct qret_cycle_report *report = &ctx->report;
	bool good = outcome == QRET_DONE || outcome == QRET_PARTIAL || outcome == QRET_BUDGET;

	report->outcome = outcome;
	report->elapsed_us = now_us - ctx->cycle.started_us;
	report->clock_us = ctx->cycle.clock_us == QRET_CUTOFF_OFF ? 0 : ctx->cycle.clock_us;
	for (int i = 0; i < LANES_MAX; i++)
		report->round_trips += ctx->lanes[i].session.round_trips;
	report->items_pinned = ctx->floors.pinned_count;
	report->consecutive_failures = outcome < 0 ? report->consecutive_failures + 1
	                               : good      ? 0
	                                           : report->consecutive_failures;
	if (good)
		report->last_success_us = report->clock_us;
	if (good && ctx->cycle.left.count == 0)
		report->oldest_overdue_us = 0;
}

int finish(struct qret_ctx *ctx)
{
	int outcome = weigh(ctx);
	int64_t now_us = qret_now_us();
	bool unreachable = outcome == QRET_ERR_CONNECTION || outcome == QRET_ERR_TIMEOUT;

	/* A server that may not be written to is left for another, where there is a choice. */
	if (outcome == QRET_STANDBY && !ctx->attached && target_hosts(ctx->target) > 1)
		session_abandon(&ctx->lanes[0].session);
	for (int i = 0; i < LANES_MAX && ctx->cycle.plan != PLAN_OPEN; i++)
		session_rest(&ctx->lanes[i].session);
	ctx->cycle.state = STATE_REST;
	if (ctx->cycle.plan != PLAN_CYCLE)
		return outcome;
	fill_report(ctx, outcome, now_us);
	cadence_ended(&ctx->cadence, now_us, context_number(ctx, OPTION_INTERVAL_MS), unreachable);
	/* The lease knows the cluster's cadence better than this instance's own interval does. */
	if (outcome == QRET_BUSY && ctx->gate.wait_ms >= 0)
		cadence_wait(&ctx->cadence, now_us, ctx->gate.wait_ms);
	log_outcome(ctx, outcome);
	backoff_forget(&ctx->runner.backoff, now_us);
	ctx->metrics.met.backed_off = ctx->runner.backoff.count;
	metrics_cycle(&ctx->metrics, &ctx->report);
	ctx->metrics.met.future_heads = 0;
	return outcome;
}
