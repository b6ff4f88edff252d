/* SPDX-License-Identifier: MIT */
/* What one step's answer means: counted, learned from, and whether its item is done. */
#include "answer.h"

#include <string.h>

#include "batch.h"
#include "clock.h"
#include "context.h"
#include "failure.h"
#include "slots.h"

static void pace(struct qret_ctx *ctx, int64_t rows)
{
	int64_t rate = context_number(ctx, OPTION_MAX_ROWS_PER_SECOND);
	int64_t now_us = qret_now_us();

	if (rate == 0)
		return;
	if (ctx->runner.pace_us < now_us)
		ctx->runner.pace_us = now_us;
	ctx->runner.pace_us += rows * US_PER_SECOND / rate;
}

/* Whether a step that deleted nothing still went on: its cursor moved. */
static bool moved(const struct phase_state *state, const struct outcome *outcome)
{
	if (!outcome->has_cursor)
		return false;
	return !state->has_cursor || strcmp(state->cursor, outcome->cursor) != 0 ||
	       memcmp(state->cursor_uuid, outcome->cursor_uuid, sizeof(state->cursor_uuid)) != 0;
}

static void count(struct qret_ctx *ctx, const struct work *work, const struct outcome *outcome)
{
	struct runner *runner = &ctx->runner;

	runner->phase->count(&ctx->report, work, outcome);
	if (runner->phase->units == 0 && outcome->deleted > 0)
		ctx->report.queues += idset_add(&runner->queues, work->item.queue_id);
	metrics_step(&ctx->metrics, runner->phase->id, outcome->elapsed_us);
	pace(ctx, outcome->deleted);
	runner->sqlstate_count = 0;
	if (outcome->failed > 0)
		failure_of_rows(ctx, work, outcome);
}

/* Told once a round of the clean-up as a metric, and as they are met in the log. */
static void tell_orphans(struct qret_ctx *ctx, const struct outcome *outcome)
{
	struct met *met = &ctx->metrics.met;
	struct line line;

	if (!ctx->phases[QRET_PHASE_PARTITION_CLEANUP - 1].has_cursor)
		met->orphans_round = 0;
	met->orphans_round += outcome->orphans;
	if (outcome->done) {
		met->orphans = met->orphans_round;
		met->orphans_round = 0;
	}
	if (outcome->orphans == 0 || !log_wants(&ctx->log, LOG_ORPHAN))
		return;
	log_begin(&line, LOG_ORPHAN);
	line_uuid(&line, "partition", outcome->orphan_uuid);
	line_number(&line, "partitions", outcome->orphans);
	log_end(&ctx->log, LOG_ORPHAN, &line);
}

/* One step by hand is over when it did something, or when its last unit has nothing. */
static void finish_single(struct qret_ctx *ctx, struct slot *slot, struct outcome *outcome)
{
	struct runner *runner = &ctx->runner;
	bool last = slot->work + 1 == runner->works + runner->count;

	if (outcome->refused) {
		struct error error;

		error_set(&error, QRET_ERR_ARGUMENT, false,
		          "cutoffs come from the server's clock: build the work list again",
		          "a cutoff is later than the server's now()");
		runner_fail(runner, &error);
		return;
	}
	if (outcome->deleted + outcome->skipped + outcome->failed == 0 && outcome->done && !last)
		return;
	ctx->phases[runner->phase->id - 1].unit = outcome->done ? (last ? 0 : slot->work->unit + 1)
	                                                        : slot->work->unit;
	ctx->cycle.partial = outcome->deleted == 0 && outcome->skipped + outcome->failed > 0;
	outcome->done = outcome->done && last && outcome->skipped == 0;
	runner->outcome = *outcome;
	runner->has_outcome = true;
	runner_halt(runner, HALT_STOPPED);
}

/*
 * Beside a busy host one step a cycle: of the first arm that has work, from where the last cycle
 * left off. The prune is over, and its next interval begins, when the last arm is.
 */
static void finish_one_step(struct qret_ctx *ctx, const struct work *work,
                            const struct outcome *outcome)
{
	struct runner *runner = &ctx->runner;
	struct phase_state *state = &ctx->phases[runner->phase->id - 1];
	bool last = work + 1 == runner->works + runner->count;
	bool idle = outcome->deleted == 0 && outcome->done && outcome->skipped == 0;

	state->unit = !outcome->done ? work->unit : last ? 0 : work->unit + 1;
	if (outcome->done && last)
		phase_stamp_event_prune(ctx);
	if (!idle)
		runner->next = runner->count;
}

/* Whether nothing more is to be done for the item, now. */
static bool is_settled(struct qret_ctx *ctx, const struct work *work, const struct outcome *outcome,
                       bool cursor_moved)
{
	const struct phase *phase = ctx->runner.phase;

	if (outcome->done || outcome->refused)
		return true;
	if (ctx->phases[phase->id - 1].one_step)
		return true;
	if (phase_prune_tired(ctx, work)) {
		if (outcome->failed == 0)
			failure_of_locks(ctx, work);
		return true;
	}
	/* A contract that deletes nothing and is not done must not spin. */
	return outcome->deleted == 0 && !(phase->cursored && cursor_moved);
}

/* A batch that a failure made smaller grows back; sized phases have theirs from the lane. */
static int32_t next_rows(const struct qret_ctx *ctx, const struct work *work)
{
	const struct phase *phase = ctx->runner.phase;
	int32_t most = phase_rows(ctx, phase);

	if (phase->sized || work->rows == 0)
		return 0;
	return work->rows < most / 2 ? 2 * work->rows : most;
}

void answer_handle(struct qret_ctx *ctx, struct lane *lane, struct slot *slot,
                   const struct pg_result *result)
{
	struct runner *runner = &ctx->runner;
	const struct phase *phase = runner->phase;
	struct phase_state *state = &ctx->phases[phase->id - 1];
	struct outcome outcome;
	bool cursor_moved;

	memset(&outcome, 0, sizeof(outcome));
	outcome.watermark = -1;
	phase->read(result, slot->rows, &outcome);
	cursor_moved = moved(state, &outcome);
	if (!outcome.refused)
		count(ctx, slot->work, &outcome);
	if (phase->sized)
		batch_learn(ctx, lane, slot->rows, &outcome);
	if (phase->id == QRET_PHASE_PARTITION_CLEANUP)
		tell_orphans(ctx, &outcome);
	if (phase->id == QRET_PHASE_EVENT_PRUNE)
		phase_count_barren(slot->work, &outcome);
	if (phase->cursored)
		phase_keep_cursor(ctx, phase, slot->work, &outcome);
	slot->work->deleted |= outcome.deleted > 0;
	slot->work->retries = slot->work->losses = 0;
	slot->work->lock_first = false;
	slot->work->rows = next_rows(ctx, slot->work);
	if (runner->single)
		finish_single(ctx, slot, &outcome);
	/* As many events as the cycle may delete, and there are more. */
	if (phase->id == QRET_PHASE_EVENT_PRUNE && !outcome.done && phase_prune_events(ctx) == 0)
		runner_halt(runner, HALT_BUDGET);
	if (!is_settled(ctx, slot->work, &outcome, cursor_moved))
		return;
	if (phase->units == 0)
		backoff_clear(&runner->backoff, slot->work->item.partition_id, phase->id);
	if (state->one_step)
		finish_one_step(ctx, slot->work, &outcome);
	if (phase->cursored && (outcome.done || !state->one_step))
		phase_reset_cursor(ctx, phase);
	slot_settle(slot);
}
