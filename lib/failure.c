/* SPDX-License-Identifier: MIT */
/*
 * What becomes of an item whose step failed: tried again, made smaller, given up, or a reason to
 * end the cycle; and of the items of a lane whose connection is gone.
 */
#include "failure.h"

#include <string.h>

#include "context.h"
#include "slots.h"
#include "sqlstate.h"
#include "text.h"
#include "uuid.h"

#define RETRIES_MOST             3
#define LOSSES_BEFORE_HALVING    2
#define LOSSES_BEFORE_LOCK_FIRST 3
#define LOCK_FIRST_ROWS          50
#define SAME_SQLSTATE_MOST       20

static void line_error(struct line *line, const struct error *error)
{
	line_text(line, "sqlstate", error->sqlstate);
	line_text(line, "message", error->message);
	if (error->hint[0] != '\0')
		line_text(line, "hint", error->hint);
}

static void log_failure(struct qret_ctx *ctx, const struct work *work, const struct error *error)
{
	const struct phase *phase = ctx->runner.phase;
	enum log_event event = (enum log_event)phase->failure_event;
	struct line line;

	if (!log_wants(&ctx->log, event))
		return;
	log_begin(&line, event);
	line_text(&line, "phase", phase->name);
	if (phase->units == 0)
		line_uuid(&line, "partition", work->item.partition_id);
	else if (phase->units > 1)
		line_text(&line, "unit", phase_unit(phase, work->unit));
	line_error(&line, error);
	log_end(&ctx->log, event, &line);
}

/* The cycle goes on without them; the first failure is the one that its end tells of. */
static void count_failed(struct qret_ctx *ctx, int64_t items, const struct error *error)
{
	ctx->cycle.partial = true;
	ctx->report.items_failed += items;
	if (ctx->cycle.first_failure.code == QRET_DONE)
		ctx->cycle.first_failure = *error;
}

void failure_of_floors(struct qret_ctx *ctx, const struct error *error)
{
	struct line line;

	if (log_wants(&ctx->log, LOG_ITEM_FAILED)) {
		log_begin(&line, LOG_ITEM_FAILED);
		line_text(&line, "phase", "floors");
		line_error(&line, error);
		log_end(&ctx->log, LOG_ITEM_FAILED, &line);
	}
	/* A host's list, or its step, is none the worse. */
	if (ctx->cycle.plan == PLAN_CYCLE)
		count_failed(ctx, 1, error);
}

/* Counts an item that is given up for this cycle. */
static void count_left(struct qret_ctx *ctx, const struct work *work, const struct error *error)
{
	count_failed(ctx, 1, error);
	if (ctx->runner.phase->units == 0)
		left_add(&ctx->cycle.left, work->item.partition_id);
}

void failure_of_backed_off(struct qret_ctx *ctx, struct work *work)
{
	char id[UUID_TEXT_BYTES];
	struct error error;

	work->settled = work->failed = true;
	uuid_text(work->item.partition_id, id);
	error_set(&error, QRET_ERR_SQL, true, "its steps failed in the cycles before: see the log",
	          "partition %s is backed off", id);
	count_left(ctx, work, &error);
}

/* Gives the item up for this cycle. */
static void give_up(struct qret_ctx *ctx, struct slot *slot, const struct error *error, bool locked)
{
	struct runner *runner = &ctx->runner;
	struct work *work = slot->work;

	log_failure(ctx, work, error);
	slot_settle(slot);
	work->failed = true;
	if (runner->phase->failure == FAILURE_LOGGED)
		return;
	count_left(ctx, work, error);
	ctx->report.items_locked += locked;
	if (runner->phase->units > 0)
		return;
	backoff_strike(&runner->backoff, work->item.partition_id, runner->phase->id, qret_now_us(),
	               context_number(ctx, OPTION_INTERVAL_MS));
}

/* A run of failures with one SQLSTATE is not the items' fault. */
static bool too_many_alike(struct runner *runner, const struct error *error)
{
	if (strcmp(runner->sqlstate, error->sqlstate) != 0)
		runner->sqlstate_count = 0;
	memcpy(runner->sqlstate, error->sqlstate, sizeof(runner->sqlstate));
	return ++runner->sqlstate_count >= SAME_SQLSTATE_MOST;
}

/*
 * A second step that lost its late lock wasted a batch: again, then smaller, then once lock-
 * first.
 */
static bool lost_late_lock(struct work *work, int32_t rows)
{
	work->losses++;
	if (work->losses > LOSSES_BEFORE_LOCK_FIRST)
		return false;
	if (work->losses == LOSSES_BEFORE_HALVING)
		work->rows = rows > 1 ? rows / 2 : 1;
	if (work->losses == LOSSES_BEFORE_LOCK_FIRST) {
		work->lock_first = true;
		work->rows = rows < LOCK_FIRST_ROWS ? rows : LOCK_FIRST_ROWS;
	}
	return true;
}

/* Whether the same item is worth another try now. */
static bool try_again(struct qret_ctx *ctx, struct lane *lane, struct slot *slot,
                      const struct error *error)
{
	bool in_prune = ctx->runner.phase->id == QRET_PHASE_EVENT_PRUNE;
	struct work *work = slot->work;

	switch (sqlstate_rule(error->sqlstate)->action) {
	case SQLSTATE_RETRY:
		return work->retries++ < RETRIES_MOST;
	case SQLSTATE_ITEM:
		/* Some event of the batch cannot be deleted: those before it go in smaller ones. */
		if (!in_prune || slot->rows <= 1)
			return false;
		work->rows = slot->rows / 2;
		return true;
	case SQLSTATE_SHRINK:
		if (slot->rows <= 1)
			return false;
		work->rows = slot->rows / 2;
		if (ctx->runner.phase->sized && work->rows < lane->rows)
			lane->rows = work->rows;
		return true;
	case SQLSTATE_LOCKED:
		if (in_prune)
			return work->retries++ < RETRIES_MOST;
		return error->sqlstate[0] == 'Q' && lost_late_lock(work, slot->rows);
	default:
		return false;
	}
}

/*
 * What goes wrong in the purge of metrics and in the prune of an outbox does not end a cycle,
 * except where it means that nobody may sweep here any more.
 */
static bool is_contained(const struct phase *phase, const struct error *error)
{
	if (error->code == QRET_ERR_LEADER_LOST || strcmp(error->sqlstate, "25006") == 0)
		return false;
	return phase->id == QRET_PHASE_METRICS_PURGE || phase->id == QRET_PHASE_EVENT_PRUNE;
}

/*
 * A failed prune waits for its next interval, also beside a busy host. The other arms are tried,
 * unless what is wrong is wrong for all of them; and a later round is not this arm's alone.
 */
static void fail_arm(struct qret_ctx *ctx, uint32_t arm, bool for_all)
{
	struct phase_state *state = &ctx->phases[QRET_PHASE_EVENT_PRUNE - 1];

	phase_stamp_event_prune(ctx);
	/* Should it be the hint that is wrong, it is not the next run's; the cursor is no other arm's. */
	state->hints[arm][0] = state->resume[arm][0] = '\0';
	phase_reset_cursor(ctx, ctx->runner.phase);
	state->unit = state->one_step && !for_all && arm + 1 < EVENT_ARMS ? arm + 1 : 0;
	if (for_all)
		ctx->runner.next = ctx->runner.count;
}

void failure_handle(struct qret_ctx *ctx, struct lane *lane, struct slot *slot,
                    const struct error *error)
{
	struct runner *runner = &ctx->runner;
	enum sqlstate_action action = sqlstate_rule(error->sqlstate)->action;
	bool contained = is_contained(runner->phase, error);
	uint32_t unit = slot->work->unit;

	/* There is nothing left to give back; a host that steps by hand may take it again. */
	if (error->code == QRET_ERR_LEADER_LOST)
		leader_forget(&ctx->gate);
	if (runner->single) {
		if (action == SQLSTATE_LOCKED)
			ctx->cycle.partial = runner->has_outcome = true;
		runner_fail(runner, error);
		return;
	}
	if (try_again(ctx, lane, slot, error))
		return;
	if ((action == SQLSTATE_CYCLE || action == SQLSTATE_PERMANENT) && !contained) {
		runner_fail(runner, error);
		return;
	}
	give_up(ctx, slot, error, action == SQLSTATE_LOCKED);
	if (runner->phase->id == QRET_PHASE_EVENT_PRUNE)
		fail_arm(ctx, unit, action == SQLSTATE_CYCLE || action == SQLSTATE_PERMANENT);
	if (too_many_alike(runner, error) && !contained)
		runner_fail(runner, error);
}

void failure_of_rows(struct qret_ctx *ctx, const struct work *work, const struct outcome *outcome)
{
	struct error error;
	char sqlstate[6];

	text_copy(sqlstate, sizeof(sqlstate), outcome->failure);
	error_set_server(&error, sqlstate,
	                 outcome->failure + (strlen(outcome->failure) < sizeof(sqlstate)
	                                             ? strlen(outcome->failure)
	                                             : sizeof(sqlstate)),
	                 NULL);
	log_failure(ctx, work, &error);
	count_failed(ctx, outcome->failed, &error);
}

void failure_of_locks(struct qret_ctx *ctx, const struct work *work)
{
	struct error error;

	error_set_server(&error, "55P03", "locks behind its events are held", NULL);
	log_failure(ctx, work, &error);
	count_failed(ctx, 0, &error);
}

/* The lane's connection is gone: what flew on it is taken over by the others, if there are any. */
void failure_lost_lane(struct qret_ctx *ctx, struct lane *lane, const struct error *error)
{
	struct runner *runner = &ctx->runner;
	struct line line;

	lane->given_up = true;
	/* What was sent on it may still run on the server: the next claim must wait for that. */
	ctx->gate.clean = false;
	if (lane == &ctx->lanes[0])
		ctx->gate.renewing = false;
	lane->flying = 0;
	lane->rows_flying = 0;
	for (int i = 0; i < SESSION_REQUESTS_MAX; i++) {
		lane->slots[i].flying = false;
		runner->orphans += lane->slots[i].work != NULL;
	}
	/* Lane 0 holds the gate: with it goes the right to send. */
	if (lane == &ctx->lanes[0]) {
		runner_fail(runner, error);
		return;
	}
	if (log_wants(&ctx->log, LOG_LANE_LOST)) {
		log_begin(&line, LOG_LANE_LOST);
		line_text(&line, "sqlstate", error->sqlstate);
		line_text(&line, "message", error->message);
		log_end(&ctx->log, LOG_LANE_LOST, &line);
	}
}
