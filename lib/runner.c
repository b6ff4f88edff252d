/* SPDX-License-Identifier: MIT */
/*
 * The runner. A slot holds an item from its first step to its last; a lane sends the steps of its
 * slots in turn and collects the answers in the same order.
 */
#include "runner.h"

#include <string.h>

#include "batch.h"
#include "clock.h"
#include "context.h"
#include "envelope.h"
#include "query.h"
#include "sqlstate.h"
#include "uuid.h"

#define RETRIES_MOST 3
#define LOSSES_BEFORE_HALVING 2
#define LOSSES_BEFORE_LOCK_FIRST 3
#define LOCK_FIRST_ROWS 50
#define SAME_SQLSTATE_MOST 20
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
		lane->rows = batch_first(ctx);
	}
}

void runner_begin(struct qret_ctx *ctx, const struct phase *phase, struct work *works, uint32_t count, bool single)
{
	struct runner *runner = &ctx->runner;

	runner->phase = phase;
	runner->works = works;
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
		works[i].lock_first = works[i].stepped = works[i].settled = false;
	}
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

static void halt(struct runner *runner, enum halt why)
{
	if (runner->halt == HALT_NONE)
		runner->halt = why;
}

static void halt_with(struct runner *runner, const struct error *error)
{
	if (runner->halt != HALT_ERROR)
		runner->error = *error;
	runner->halt = HALT_ERROR;
}

static void settle(struct slot *slot)
{
	slot->work->settled = true;
	slot->work = NULL;
}

/* ---- Failures -------------------------------------------------------------------------------- */

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
	line_text(&line, "sqlstate", error->sqlstate);
	line_text(&line, "message", error->message);
	if (error->hint[0] != '\0')
		line_text(&line, "hint", error->hint);
	log_end(&ctx->log, event, &line);
}

/* Gives the item up for this cycle. */
static void give_up(struct qret_ctx *ctx, struct slot *slot, const struct error *error, bool locked)
{
	struct runner *runner = &ctx->runner;
	struct work *work = slot->work;

	log_failure(ctx, work, error);
	settle(slot);
	work->failed = true;
	if (runner->phase->failure == FAILURE_LOGGED)
		return;
	ctx->cycle.partial = true;
	ctx->report.items_failed++;
	ctx->report.items_locked += locked;
	if (ctx->cycle.first_failure.code == QRET_DONE)
		ctx->cycle.first_failure = *error;
	if (runner->phase->units > 0)
		return;
	left_add(&ctx->cycle.left, work->item.partition_id);
	backoff_strike(&runner->backoff, work->item.partition_id, qret_now_us(), context_number(ctx, OPTION_INTERVAL_MS));
}

/* A run of failures with one SQLSTATE is not the items' fault. */
static bool too_many_alike(struct runner *runner, const struct error *error)
{
	if (strcmp(runner->sqlstate, error->sqlstate) != 0)
		runner->sqlstate_count = 0;
	memcpy(runner->sqlstate, error->sqlstate, sizeof(runner->sqlstate));
	return ++runner->sqlstate_count >= SAME_SQLSTATE_MOST;
}

/* A second step that lost its late lock wasted a batch: again, then smaller, then once lock-first. */
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
static bool try_again(struct qret_ctx *ctx, struct lane *lane, struct slot *slot, const struct error *error)
{
	struct work *work = slot->work;

	switch (sqlstate_rule(error->sqlstate)->action) {
	case SQLSTATE_RETRY:
		return work->retries++ < RETRIES_MOST;
	case SQLSTATE_SHRINK:
		if (slot->rows <= 1)
			return false;
		work->rows = slot->rows / 2;
		if (ctx->runner.phase->sized && work->rows < lane->rows)
			lane->rows = work->rows;
		return true;
	case SQLSTATE_LOCKED:
		return error->sqlstate[0] == 'Q' && lost_late_lock(work, slot->rows);
	default:
		return false;
	}
}

static void handle_failure(struct qret_ctx *ctx, struct lane *lane, struct slot *slot, const struct error *error)
{
	struct runner *runner = &ctx->runner;
	enum sqlstate_action action = sqlstate_rule(error->sqlstate)->action;
	bool contained = runner->phase->id == QRET_PHASE_METRICS_PURGE || runner->phase->id == QRET_PHASE_EVENT_PRUNE;

	if (runner->single) {
		if (action == SQLSTATE_LOCKED)
			ctx->cycle.partial = runner->has_outcome = true;
		halt_with(runner, error);
		return;
	}
	if (try_again(ctx, lane, slot, error))
		return;
	if ((action == SQLSTATE_CYCLE || action == SQLSTATE_PERMANENT) && !contained) {
		halt_with(runner, error);
		return;
	}
	give_up(ctx, slot, error, action == SQLSTATE_LOCKED);
	/* A failed prune is tried again at the next interval, arms and all. */
	if (runner->phase->id == QRET_PHASE_EVENT_PRUNE)
		runner->next = runner->count;
	if (too_many_alike(runner, error) && !contained)
		halt_with(runner, error);
}

/* ---- Answers --------------------------------------------------------------------------------- */

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
}

/* One step by hand is over when it did something, or when its last unit has nothing. */
static void finish_single(struct qret_ctx *ctx, struct slot *slot, struct outcome *outcome)
{
	struct runner *runner = &ctx->runner;
	bool last = slot->work + 1 == runner->works + runner->count;

	if (outcome->refused) {
		struct error error;

		error_set(&error, QRET_ERR_ARGUMENT, false, "cutoffs come from the server's clock: build the work list again",
		          "a cutoff is later than the server's now()");
		halt_with(runner, &error);
		return;
	}
	if (outcome->deleted == 0 && outcome->done && outcome->skipped == 0 && !last)
		return;
	ctx->phases[runner->phase->id - 1].unit = outcome->done ? (last ? 0 : slot->work->unit + 1) : slot->work->unit;
	ctx->cycle.partial = outcome->deleted == 0 && outcome->skipped > 0;
	outcome->done = outcome->done && last && outcome->skipped == 0;
	runner->outcome = *outcome;
	runner->has_outcome = true;
	halt(runner, HALT_STOPPED);
}

/* Whether nothing more is to be done for the item. */
static bool is_settled(struct qret_ctx *ctx, const struct outcome *outcome, bool cursor_moved)
{
	const struct phase *phase = ctx->runner.phase;

	if (outcome->done || outcome->refused)
		return true;
	if (ctx->phases[phase->id - 1].one_step)
		return true;
	/* A contract that deletes nothing and is not done must not spin. */
	return outcome->deleted == 0 && !(phase->cursored && cursor_moved);
}

static void handle_answer(struct qret_ctx *ctx, struct lane *lane, struct slot *slot, const struct pg_result *result)
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
	if (phase->cursored)
		phase_keep_cursor(ctx, phase, &outcome);
	slot->work->deleted |= outcome.deleted > 0;
	slot->work->retries = slot->work->losses = 0;
	slot->work->lock_first = false;
	slot->work->rows = phase->sized ? 0 : slot->work->rows;
	if (runner->single)
		finish_single(ctx, slot, &outcome);
	if (!is_settled(ctx, &outcome, cursor_moved))
		return;
	if (phase->units == 0)
		backoff_clear(&runner->backoff, slot->work->item.partition_id);
	if (phase->cursored)
		phase_reset_cursor(ctx, phase);
	if (state->one_step)
		runner->next = runner->count;
	settle(slot);
}

/* The lane's connection is gone: what flew on it is taken over by the others, if there are any. */
static void handle_loss(struct qret_ctx *ctx, struct lane *lane, const struct error *error)
{
	struct runner *runner = &ctx->runner;
	struct line line;

	lane->given_up = true;
	lane->flying = 0;
	lane->rows_flying = 0;
	for (int i = 0; i < SESSION_REQUESTS_MAX; i++) {
		lane->slots[i].flying = false;
		runner->orphans += lane->slots[i].work != NULL;
	}
	/* Lane 0 holds the gate: with it goes the right to send. */
	if (lane == &ctx->lanes[0]) {
		halt_with(runner, error);
		return;
	}
	if (log_wants(&ctx->log, LOG_LANE_LOST)) {
		log_begin(&line, LOG_LANE_LOST);
		line_text(&line, "sqlstate", error->sqlstate);
		line_text(&line, "message", error->message);
		log_end(&ctx->log, LOG_LANE_LOST, &line);
	}
}

/* A renewal came back: whether the claim still stands. */
static void handle_renewal(struct qret_ctx *ctx, int rc, const struct pg_result *result, struct error *error)
{
	bool stands = rc == QRET_DONE && leader_renew_read(ctx, result, error);

	ctx->gate.renewing = false;
	/* One that failed is tried again with the next step; if the lease runs out, the fence says so. */
	if (!stands && error->code == QRET_ERR_LEADER_LOST)
		halt_with(&ctx->runner, error);
}

/* Sends a renewal between two steps where its time has come. */
static void renew(struct qret_ctx *ctx, struct lane *lane)
{
	struct parameters parameters = { 0 };

	if (lane != &ctx->lanes[0] || lane->session.state != SESSION_READY || !query_has_room(&lane->session) ||
	    qret_now_us() < leader_renew_due_us(ctx))
		return;
	if (envelope_send(&lane->session, NULL, leader_renew_bind(ctx, &parameters), &parameters, &ctx->gate) != QRET_DONE)
		handle_loss(ctx, lane, &lane->session.lost);
}

/* Takes what has arrived on one lane; returns how many answers that was. */
static int collect(struct qret_ctx *ctx, struct lane *lane)
{
	int answers = 0;

	/* The answer to a lane's settings is not a step's: session_process takes it. */
	while (lane->session.state == SESSION_READY && lane->session.count > 0 && answers < ANSWERS_A_CALL) {
		struct pg_result *result = NULL;
		struct error error = { 0 };
		void *owner;
		int rc = query_collect(&lane->session, &result, &owner, &error);
		struct slot *slot = owner;

		if (rc == QRET_WAIT)
			break;
		answers++;
		if (owner == NULL) {
			handle_loss(ctx, lane, &error);
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
			handle_answer(ctx, lane, slot, result);
		else
			handle_failure(ctx, lane, slot, &error);
		result_free(result);
	}
	return answers;
}

/* ---- Sending --------------------------------------------------------------------------------- */

/* Sets halt where no further batch may begin. */
static bool may_send(struct qret_ctx *ctx)
{
	struct runner *runner = &ctx->runner;
	int64_t budget_ms = context_number(ctx, OPTION_CYCLE_BUDGET_MS);
	int64_t limit = context_number(ctx, OPTION_EVENT_PRUNE_LIMIT);

	if (wake_stopped(&ctx->wake))
		halt(runner, HALT_STOPPED);
	else if (runner->single)
		return runner->halt == HALT_NONE;
	else if (budget_ms > 0 && qret_now_us() >= clock_after_ms(ctx->cycle.started_us, budget_ms))
		halt(runner, HALT_BUDGET);
	else if (runner->phase->id == QRET_PHASE_EVENT_PRUNE && limit > 0 && ctx->report.events_deleted >= limit)
		halt(runner, HALT_BUDGET);
	else if (runner->phase->units == 0 && pager_stale(&ctx->pager))
		halt(runner, HALT_STALE);
	return runner->halt == HALT_NONE;
}

static struct slot *free_slot(struct lane *lane)
{
	for (int i = 0; i < SESSION_REQUESTS_MAX; i++) {
		if (lane->slots[i].work == NULL)
			return &lane->slots[i];
	}
	return NULL;
}

static struct slot *waiting_slot(struct lane *lane)
{
	for (int i = 0; i < SESSION_REQUESTS_MAX; i++) {
		if (lane->slots[i].work != NULL && !lane->slots[i].flying)
			return &lane->slots[i];
	}
	return NULL;
}

/* An item that a lost lane left behind. */
static struct work *take_orphan(struct qret_ctx *ctx)
{
	for (int i = 0; i < LANES_MAX && ctx->runner.orphans > 0; i++) {
		struct slot *slot = ctx->lanes[i].given_up ? waiting_slot(&ctx->lanes[i]) : NULL;
		struct work *work = slot == NULL ? NULL : slot->work;

		if (work == NULL)
			continue;
		slot->work = NULL;
		ctx->runner.orphans--;
		return work;
	}
	return NULL;
}

static void skip_backed_off(struct qret_ctx *ctx, struct work *work)
{
	char id[UUID_TEXT_BYTES];

	work->settled = work->failed = true;
	ctx->cycle.partial = true;
	ctx->report.items_failed++;
	left_add(&ctx->cycle.left, work->item.partition_id);
	uuid_text(work->item.partition_id, id);
	if (ctx->cycle.first_failure.code == QRET_DONE)
		error_set(&ctx->cycle.first_failure, QRET_ERR_SQL, true, "its steps failed in the cycles before: see the log",
		          "partition %s is backed off", id);
}

/* The next item that nobody has had and that has something to do in this phase. */
static struct work *take_next(struct qret_ctx *ctx)
{
	struct runner *runner = &ctx->runner;

	while (runner->next < runner->count) {
		struct work *work = &runner->works[runner->next++];

		if (runner->phase->units > 0 || runner->single)
			return work;
		if (work->settled || !runner->phase->applies(ctx, work))
			continue;
		if (!backoff_active(&runner->backoff, work->item.partition_id, qret_now_us()))
			return work;
		skip_backed_off(ctx, work);
	}
	return NULL;
}

/* The slot to send next on this lane: unfinished items first, then new ones. */
static struct slot *next_slot(struct qret_ctx *ctx, struct lane *lane)
{
	struct slot *slot = waiting_slot(lane);

	if (slot != NULL)
		return slot;
	slot = free_slot(lane);
	if (slot == NULL)
		return NULL;
	slot->work = take_orphan(ctx);
	if (slot->work == NULL)
		slot->work = take_next(ctx);
	return slot->work == NULL ? NULL : slot;
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
		handle_loss(ctx, lane, &lane->session.lost);
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
	while (lane->session.state == SESSION_READY && query_has_room(&lane->session) && batch_fits(ctx, lane)) {
		struct slot *slot;

		if (!may_send(ctx) || qret_now_us() < ctx->runner.pace_us)
			return;
		slot = next_slot(ctx, lane);
		if (slot == NULL || send_step(ctx, lane, slot) != QRET_DONE)
			return;
	}
}

/* Further lanes are opened when there is more to do than lane 0 has in hand. */
static void open_lane(struct qret_ctx *ctx, struct lane *lane)
{
	struct error error;
	int rc;

	if (lane->given_up || lane->session.state == SESSION_READY || ctx->runner.halt != HALT_NONE)
		return;
	if (lane->session.state != SESSION_CONNECTING && lane->session.state != SESSION_SETTING_UP) {
		if (ctx->runner.count - ctx->runner.next < 2)
			return;
		cycle_open_session(ctx, &lane->session);
	}
	rc = session_process(&lane->session, &error);
	if (rc < 0)
		handle_loss(ctx, lane, &error);
}

int64_t runner_deadline_us(const struct qret_ctx *ctx)
{
	int64_t renew_us = leader_renew_due_us(ctx);

	return ctx->runner.pace_us > qret_now_us() && ctx->runner.pace_us < renew_us ? ctx->runner.pace_us : renew_us;
}

/* Whether some item is in a lane's hands or still to be taken. */
static bool has_work(struct qret_ctx *ctx, int lane_count)
{
	for (int i = 0; i < lane_count; i++) {
		if (waiting_slot(&ctx->lanes[i]) != NULL)
			return true;
	}
	return ctx->runner.next < ctx->runner.count;
}

/* A lane that is still being opened when the work is over would be polled, and answered by nobody. */
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
	/* Lane 0 was looked at before a later one was lost, and nothing would wake it for what that left behind. */
	if (ctx->runner.orphans > 0 && ctx->lanes[0].flying == 0 && ctx->runner.halt == HALT_NONE && qret_now_us() >= ctx->runner.pace_us)
		return QRET_MORE;
	return answers >= ANSWERS_A_CALL ? QRET_MORE : QRET_WAIT;
}
