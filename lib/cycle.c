/* SPDX-License-Identifier: MIT */
/*
 * The state machine of a cycle. A state, in the files states_*.c, sends at most one statement,
 * waits for its answer and says which state follows; nothing here blocks but cycle_run.
 */
#include "cycle.h"

#include <string.h>

#include "clock.h"
#include "envelope.h"
#include "finish.h"
#include "query.h"
#include "settings.h"
#include "states.h"
#include "wait.h"

int state_move(struct qret_ctx *ctx, enum cycle_state state)
{
	ctx->cycle.state = state;
	ctx->cycle.asked = false;
	return QRET_MORE;
}

int state_leave(struct qret_ctx *ctx)
{
	if (states_late_prune(ctx))
		return QRET_MORE;
	return state_move(ctx, overdue_wanted(ctx) ? STATE_OVERDUE : STATE_RELEASE);
}

int state_fail(struct qret_ctx *ctx, const struct error *error)
{
	if (ctx->cycle.error.code == QRET_DONE)
		ctx->cycle.error = *error;
	return state_leave(ctx);
}

int state_stop(struct qret_ctx *ctx)
{
	ctx->cycle.stopped = true;
	return state_leave(ctx);
}

/* What the states send comes from the context's own texts, cycle after cycle. */
static const struct envelope unfenced = { .often = true };

/* The claim is still under way, or about to be given back. */
static bool is_at_the_gate(const struct qret_ctx *ctx)
{
	return ctx->cycle.state == STATE_GATE || ctx->cycle.state == STATE_RELEASE;
}

/*
 * The pages of a long list and the floors of many partitions take longer than a lease lasts, with no
 * step between them that would renew it. By itself: nothing is sent under a lease that is lost.
 */
static int keep_lease(struct qret_ctx *ctx, struct error *error)
{
	struct session *session = &ctx->lanes[0].session;
	struct parameters parameters = { 0 };
	struct pg_result *answer = NULL;
	bool stands;
	void *owner;
	int rc;

	if (!ctx->gate.renewing) {
		if (ctx->cycle.plan != PLAN_CYCLE || wake_stopped(&ctx->wake) ||
		    !leader_lease_is_old(ctx))
			return QRET_DONE;
		/* Where it cannot be sent, collecting says why. */
		envelope_send(session, &unfenced, leader_renew_bind(ctx, &parameters), &parameters,
		              &ctx->gate);
	}
	rc = query_collect(session, &answer, &owner, error);
	if (rc == QRET_WAIT)
		return rc;
	stands = leader_renewed(ctx, rc, answer, error) && session->state == SESSION_READY;
	result_free(answer);
	return stands ? QRET_DONE : error->code;
}

int state_ask(struct qret_ctx *ctx, bind_fn bind, struct pg_result **ret_answer,
              struct error *error)
{
	struct session *session = &ctx->lanes[0].session;
	struct parameters parameters = { 0 };
	const char *text;
	void *owner;
	int rc;

	if (!ctx->cycle.asked) {
		rc = is_at_the_gate(ctx) ? QRET_DONE : keep_lease(ctx, error);
		if (rc != QRET_DONE)
			return rc;
		if (wake_stopped(&ctx->wake) && ctx->cycle.state != STATE_RELEASE)
			return QRET_STOPPED;
		text = bind(ctx, &parameters);
		rc = envelope_send(session, &unfenced, text, &parameters, ctx);
		if (rc != QRET_DONE) {
			*error = session->lost;
			return rc;
		}
		ctx->cycle.asked = true;
	}
	rc = query_collect(session, ret_answer, &owner, error);
	if (rc != QRET_WAIT)
		ctx->cycle.asked = false;
	return rc;
}

int state_no_answer(struct qret_ctx *ctx, int rc, const struct error *error)
{
	if (rc == QRET_WAIT)
		return QRET_WAIT;
	return rc == QRET_STOPPED ? state_stop(ctx) : state_fail(ctx, error);
}

bool state_runs(const struct qret_ctx *ctx, int engine)
{
	int64_t engines = context_number(ctx, OPTION_ENGINES);

	if (ctx->cycle.plan == PLAN_STEP)
		return phase_find(ctx->cycle.phase)->engine == engine;
	return ctx->cycle.plan == PLAN_WORKLIST ? engine == ENGINES_LOG
	                                        : engines == ENGINES_BOTH || engines == engine;
}

void cycle_open_session(struct qret_ctx *ctx, struct session *session)
{
	const struct connect_limits limits = { context_number(ctx, OPTION_CONNECT_TIMEOUT_MS),
		                               context_number(ctx, OPTION_IDLE_LIMIT_MS) };

	session_open(session, ctx->target, limits);
}

/* The settings may have changed since the session was last used. */
static void configure_sessions(struct qret_ctx *ctx)
{
	const struct session_settings settings = {
		.statement_timeout_ms = context_number(ctx, OPTION_STATEMENT_TIMEOUT_MS),
		.lock_timeout_ms = context_number(ctx, OPTION_LOCK_TIMEOUT_MS),
		.late_lock_ms = context_number(ctx, OPTION_LATE_LOCK_MS),
		.idle_limit_ms = context_number(ctx, OPTION_IDLE_LIMIT_MS),
		.wrapped = ctx->attached ||
		           context_number(ctx, OPTION_POOLER) == POOLER_TRANSACTION,
	};

	for (int i = 0; i < LANES_MAX; i++) {
		struct session *session = &ctx->lanes[i].session;

		if (!session->borrowed && session->state == SESSION_READY &&
		    !settings_equal(&session->settings, &settings) && !ctx->gate.held)
			session_abandon(session);
		/* Lane 0 is looked after where it is opened; others may have become too many. */
		if (i > 0 && session->state == SESSION_READY &&
		    (i >= context_number(ctx, OPTION_PARALLELISM) ||
		     !session_alive(session, false)))
			session_abandon(session);
		session->settings = settings;
		session->settings_text = context_statement(ctx, STATEMENT_SETTINGS);
		session->log = &ctx->log;
		session->round_trips = 0;
	}
}

static int state_end(struct qret_ctx *ctx)
{
	return finish(ctx);
}

/* What each state does, what may follow it, and which answer it waits for. */
/* clang-format off */
static const struct {
	const char *name;
	int (*run)(struct qret_ctx *ctx);
} states[] = {
	[STATE_OPEN]    = { "open", state_open },       /* FACTS, RELEASE, END: a connection, settings */
	[STATE_FACTS]   = { "facts", state_facts },     /* VERSION, GATE, WALK, PAGE, RUN, RELEASE: facts.sql */
	[STATE_VERSION] = { "version", state_version }, /* the same: schema_version.sql */
	[STATE_GATE]    = { "gate", state_gate },       /* WALK, PAGE, RUN, RELEASE, END: gate_take.sql, lease_*.sql */
	[STATE_WALK]    = { "walk", state_walk },       /* PINNED, RELEASE: floors_walk.sql */
	[STATE_PINNED]  = { "pinned", state_pinned },   /* SETTLE, PAGE, RELEASE: floors_pinned.sql */
	[STATE_PAGE]    = { "page", state_page },       /* RUN, REFRESH, SETTLE, RELEASE: worklist_*.sql */
	[STATE_REFRESH] = { "refresh", state_refresh }, /* RUN, PAGE, RELEASE: worklist_by_id.sql */
	[STATE_RUN]     = { "run", state_run },         /* PAGE, REFRESH, SETTLE, OVERDUE, RELEASE: step_*.sql, ... */
	[STATE_SETTLE]  = { "settle", state_settle },   /* PINNED, PAGE, RELEASE: floors_refresh.sql */
	[STATE_OVERDUE] = { "overdue", state_overdue }, /* RELEASE: overdue.sql */
	[STATE_RELEASE] = { "release", state_release }, /* END: gate_release.sql, lease_release.sql */
	[STATE_END]     = { "end", state_end },         /* REST */
};
/* clang-format on */

void cycle_start(struct qret_ctx *ctx, enum plan plan)
{
	struct cycle *cycle = &ctx->cycle;
	int32_t phase = cycle->phase;
	struct work unit = cycle->units[0];

	memset(cycle, 0, sizeof(*cycle));
	cycle->plan = plan;
	cycle->state = STATE_OPEN;
	cycle->eager = true;
	cycle->clock_us = QRET_CUTOFF_OFF;
	cycle->started_us = qret_now_us();
	cycle->phase = phase;
	cycle->units[0] = unit;
	configure_sessions(ctx);
	pager_begin(&ctx->pager);
}

int cycle_advance(struct qret_ctx *ctx)
{
	int rc;

	wake_drain(&ctx->wake);
	do
		rc = states[ctx->cycle.state].run(ctx);
	while (rc == QRET_MORE && ctx->cycle.state != STATE_RUN);
	ctx->cycle.eager = rc == QRET_MORE;
	return rc;
}

int cycle_run(struct qret_ctx *ctx)
{
	int rc;

	while ((rc = cycle_advance(ctx)) == QRET_MORE || rc == QRET_WAIT) {
		if (rc == QRET_WAIT)
			wait_once(ctx, wait_deadline_us(ctx));
	}
	return rc;
}

void cycle_drop(struct qret_ctx *ctx)
{
	for (int i = 0; i < LANES_MAX; i++)
		session_abandon(&ctx->lanes[i].session);
	leader_forget(&ctx->gate);
	error_set(&ctx->cycle.error, QRET_ERR_CONNECTION, true, NULL,
	          "the connection was taken away in mid-cycle");
	/* What was done is reported as for any other cycle that failed. */
	finish(ctx);
	error_clear(&ctx->error);
}

bool cycle_in_progress(const struct qret_ctx *ctx)
{
	return ctx->cycle.state != STATE_REST;
}

bool cycle_budget_spent(const struct qret_ctx *ctx)
{
	int64_t budget_ms = context_number(ctx, OPTION_CYCLE_BUDGET_MS);

	return budget_ms > 0 && qret_now_us() >= clock_after_ms(ctx->cycle.started_us, budget_ms);
}
