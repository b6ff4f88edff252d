/* SPDX-License-Identifier: MIT */
/*
 * The runner. A slot holds an item from its first step to its last; a lane sends the steps of its
 * slots in turn and collects the answers in the same order.
 */
#include "runner.h"

#include <string.h>

#include "answer.h"
#include "batch.h"
#include "clock.h"
#include "context.h"
#include "envelope.h"
#include "failure.h"
#include "query.h"
#include "slots.h"

#define LANE_AFTER_US  (5 * US_PER_MS)
#define ANSWERS_A_CALL 64 /* then the host's loop gets its turn */

void runner_free(struct runner *runner)
{
	idset_free(&runner->queues);
}

void runner_reset(struct qret_ctx *ctx)
{
	struct runner *runner = &ctx->runner;

	runner->phase = NULL;
	runner->pace_us = 0;
	runner->sqlstate_count = 0;
	idset_clear(&runner->queues);
	for (int i = 0; i < LANES_MAX; i++) {
		struct lane *lane = &ctx->lanes[i];

		lane->given_up = false;
		lane->window = 1;
		/* What the last cycle learned still holds, unless the options say otherwise now. */
		if (lane->rows < 1 || lane->rows > context_number(ctx, OPTION_BATCH_SIZE))
			lane->rows = batch_first(ctx);
	}
}

void runner_begin(struct qret_ctx *ctx, const struct phase *phase, struct work *works,
                  uint32_t count, bool single)
{
	struct runner *runner = &ctx->runner;

	runner->phase = phase;
	runner->works = works;
	runner->begun_us = qret_now_us();
	runner->count = count;
	runner->next = runner->orphans = 0;
	runner->single = single;
	runner->halt = HALT_NONE;
	runner->has_outcome = false;
	error_clear(&runner->error);
	memset(&runner->outcome, 0, sizeof(runner->outcome));
	runner->outcome.watermark = -1;
	for (int i = 0; i < LANES_MAX; i++) {
		memset(ctx->lanes[i].slots, 0, sizeof(ctx->lanes[i].slots));
		ctx->lanes[i].flying = 0;
		ctx->lanes[i].rows_flying = 0;
	}
	for (uint32_t i = 0; i < count; i++) {
		works[i].rows = 0;
		works[i].retries = works[i].losses = 0;
		works[i].barren = 0;
		works[i].lock_first = works[i].stepped = works[i].settled = false;
	}
}

void runner_halt(struct runner *runner, enum halt why)
{
	if (runner->halt == HALT_NONE)
		runner->halt = why;
}

void runner_fail(struct runner *runner, const struct error *error)
{
	if (runner->halt != HALT_ERROR)
		runner->error = *error;
	runner->halt = HALT_ERROR;
}

void runner_continue(struct runner *runner)
{
	runner->halt = HALT_NONE;
}

/* How many lanes this phase may use: units of its own go in order, on lane 0. */
static int lanes(const struct qret_ctx *ctx)
{
	if (ctx->attached || ctx->runner.single || ctx->runner.phase->units > 0)
		return 1;
	return (int)context_number(ctx, OPTION_PARALLELISM);
}

/* A renewal came back: whether the claim still stands. */
static void handle_renewal(struct qret_ctx *ctx, int rc, const struct pg_result *result,
                           struct error *error)
{
	if (!leader_renewed(ctx, rc, result, error))
		runner_fail(&ctx->runner, error);
}

/* Sends a renewal between two steps where its time has come. */
static void renew(struct qret_ctx *ctx, struct lane *lane)
{
	struct parameters parameters = { 0 };

	/* After a stale page the cycle goes on. */
	if ((ctx->runner.halt != HALT_NONE && ctx->runner.halt != HALT_STALE) ||
	    lane != &ctx->lanes[0] || lane->session.state != SESSION_READY ||
	    !query_has_room(&lane->session) || qret_now_us() < leader_renew_due_us(ctx))
		return;
	if (envelope_send(&lane->session, NULL, leader_renew_bind(ctx, &parameters), &parameters,
	                  &ctx->gate) != QRET_DONE)
		failure_lost_lane(ctx, lane, &lane->session.lost);
}

/* Takes what has arrived on one lane; returns how many answers that was. */
static int collect(struct qret_ctx *ctx, struct lane *lane)
{
	int answers = 0;

	/* The answer to a lane's settings is not a step's: session_process takes it. */
	while (lane->session.state == SESSION_READY && lane->session.count > 0 &&
	       answers < ANSWERS_A_CALL) {
		struct pg_result *result = NULL;
		struct error error = { 0 };
		void *owner;
		int rc = query_collect(&lane->session, &result, &owner, &error);
		struct slot *slot = owner;

		if (rc == QRET_WAIT)
			break;
		answers++;
		if (owner == NULL) {
			failure_lost_lane(ctx, lane, &error);
			break;
		}
		if (owner == &ctx->gate) {
			handle_renewal(ctx, rc, result, &error);
			result_free(result);
			continue;
		}
		slot->flying = false;
		lane->flying--;
		lane->rows_flying -= slot->rows;
		if (rc == QRET_DONE)
			answer_handle(ctx, lane, slot, result);
		else
			failure_handle(ctx, lane, slot, &error);
		result_free(result);
	}
	return answers;
}

/*
 * Sets halt where no further batch may begin. A budget that finding the work has used up would never
 * let anything go, so the first batch of a cycle is sent all the same.
 */
static bool may_send(struct qret_ctx *ctx)
{
	struct runner *runner = &ctx->runner;

	if (wake_stopped(&ctx->wake))
		runner_halt(runner, HALT_STOPPED);
	else if (runner->single)
		return runner->halt == HALT_NONE;
	else if (!ctx->cycle.late_prune && ctx->report.steps > 0 && cycle_budget_spent(ctx))
		runner_halt(runner, HALT_BUDGET);
	else if (runner->phase->units == 0 && pager_stale(&ctx->pager))
		runner_halt(runner, HALT_STALE);
	return runner->halt == HALT_NONE;
}

static int send_step(struct qret_ctx *ctx, struct lane *lane, struct slot *slot)
{
	const struct phase *phase = ctx->runner.phase;
	struct parameters parameters = { 0 };
	struct envelope envelope;
	const char *text;
	int rc;

	slot->rows = batch_rows(ctx, lane, slot->work);
	text = phase->bind(ctx, slot->work, slot->rows, ctx->runner.single, &parameters);
	leader_envelope(ctx, &envelope);
	rc = envelope_send(&lane->session, &envelope, text, &parameters, slot);
	if (rc != QRET_DONE) {
		failure_lost_lane(ctx, lane, &lane->session.lost);
		return rc;
	}
	ctx->report.steps++;
	if (phase->units == 0 && !slot->work->stepped)
		ctx->report.partitions++;
	slot->work->stepped = true;
	slot->flying = true;
	lane->flying++;
	lane->rows_flying += slot->rows;
	return QRET_DONE;
}

static void fill(struct qret_ctx *ctx, struct lane *lane)
{
	while (lane->session.state == SESSION_READY && query_has_room(&lane->session) &&
	       batch_fits(ctx, lane)) {
		struct slot *slot;

		if (!may_send(ctx) || qret_now_us() < ctx->runner.pace_us)
			return;
		slot = slot_next(ctx, lane);
		if (slot == NULL || send_step(ctx, lane, slot) != QRET_DONE)
			return;
	}
}

/* Further lanes are opened when there is more to do than lane 0 has in hand. */
static void open_lane(struct qret_ctx *ctx, struct lane *lane)
{
	bool opening = lane->session.state == SESSION_CONNECTING ||
	               lane->session.state == SESSION_SETTING_UP;
	struct error error;
	int rc;

	/*
	 * One that is half open is not left to poll(2), which would find its socket ready again
	 * and again.
	 */
	if (opening && ctx->runner.halt != HALT_NONE)
		session_abandon(&lane->session);
	/* One that had nothing to do, while another had, is opened again before it is lost. */
	if (lane->session.state == SESSION_READY && slot_waiting(lane) == NULL &&
	    session_idled_out(&lane->session))
		session_abandon(&lane->session);
	if (lane->given_up || lane->session.state == SESSION_READY || ctx->runner.halt != HALT_NONE)
		return;
	if (!opening) {
		/* Work that is over in a moment is not worth a connection. */
		if (ctx->runner.count - ctx->runner.next < 2 ||
		    qret_now_us() < ctx->runner.begun_us + LANE_AFTER_US)
			return;
		cycle_open_session(ctx, &lane->session);
	}
	rc = session_process(&lane->session, &error);
	if (rc < 0)
		failure_lost_lane(ctx, lane, &error);
}

static int64_t earlier(int64_t a_us, int64_t b_us)
{
	return a_us < b_us ? a_us : b_us;
}

/* When the next lane may be opened: no answer may come before that. */
static int64_t lane_due_us(const struct qret_ctx *ctx)
{
	int64_t due_us = ctx->runner.begun_us + LANE_AFTER_US;

	if (due_us <= ctx->runner.looked_us || ctx->runner.count - ctx->runner.next < 2)
		return NO_DEADLINE;
	for (int i = 1; i < lanes(ctx); i++) {
		const struct lane *lane = &ctx->lanes[i];

		if (!lane->given_up && lane->session.state != SESSION_READY)
			return due_us;
	}
	return NO_DEADLINE;
}

/*
 * Against the moment of the last look, not against now: what came due since then has not been seen
 * to.
 */
int64_t runner_deadline_us(const struct qret_ctx *ctx)
{
	const struct runner *runner = &ctx->runner;
	int64_t budget_ms = context_number(ctx, OPTION_CYCLE_BUDGET_MS);
	int64_t deadline_us, budget_us;

	if (runner->halt == HALT_STALE)
		return leader_renew_due_us(ctx);
	/* Nothing is sent any more, not even a renewal: only answers are waited for. */
	if (runner->halt != HALT_NONE)
		return NO_DEADLINE;
	deadline_us = earlier(leader_renew_due_us(ctx), lane_due_us(ctx));
	if (runner->pace_us <= runner->looked_us)
		return deadline_us;
	deadline_us = earlier(deadline_us, runner->pace_us);
	budget_us = clock_after_ms(ctx->cycle.started_us, budget_ms);
	/* Over at the last look already, it is seen to when an answer makes room. */
	if (budget_ms == 0 || runner->single || ctx->cycle.late_prune ||
	    budget_us <= runner->looked_us)
		return deadline_us;
	return earlier(deadline_us, budget_us);
}

/* Whether some item is in a lane's hands or still to be taken. */
static bool has_work(struct qret_ctx *ctx, int lane_count)
{
	for (int i = 0; i < lane_count; i++) {
		if (slot_waiting(&ctx->lanes[i]) != NULL)
			return true;
	}
	return ctx->runner.next < ctx->runner.count;
}

/*
 * A lane that is still being opened when the work is over would be polled, and answered by
 * nobody.
 */
static void drop_late_lanes(struct qret_ctx *ctx, int lane_count)
{
	for (int i = 1; i < lane_count; i++) {
		struct session *session = &ctx->lanes[i].session;

		if (session->state == SESSION_CONNECTING || session->state == SESSION_SETTING_UP)
			session_abandon(session);
	}
}

int runner_process(struct qret_ctx *ctx)
{
	int lane_count = lanes(ctx), answers = 0;
	uint32_t flying = 0;

	ctx->runner.looked_us = qret_now_us();
	for (int i = 0; i < lane_count; i++) {
		struct lane *lane = &ctx->lanes[i];

		if (i > 0)
			open_lane(ctx, lane);
		answers += collect(ctx, lane);
		renew(ctx, lane);
		fill(ctx, lane);
		flying += lane->session.state == SESSION_READY ? lane->session.count : 0;
	}
	if (flying == 0 && (ctx->runner.halt != HALT_NONE || !has_work(ctx, lane_count))) {
		drop_late_lanes(ctx, lane_count);
		return QRET_DONE;
	}
	/*
	 * Lane 0 was looked at before a later one was lost, and nothing would wake it for what
	 * that left behind.
	 */
	if (ctx->runner.orphans > 0 && ctx->lanes[0].flying == 0 && ctx->runner.halt == HALT_NONE &&
	    qret_now_us() >= ctx->runner.pace_us)
		return QRET_MORE;
	return answers >= ANSWERS_A_CALL ? QRET_MORE : QRET_WAIT;
}
