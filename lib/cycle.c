/* SPDX-License-Identifier: MIT */
/*
 * The states of a cycle, one function each, and the table that names them. A state sends at most
 * one statement, waits for its answer and says which state follows; nothing here blocks.
 */
#include "cycle.h"

#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "context.h"
#include "envelope.h"
#include "finish.h"
#include "query.h"
#include "settings.h"
#include "sqlstate.h"
#include "template.h"
#include "wait.h"

typedef const char *(*bind_fn)(struct qret_ctx *ctx, struct parameters *parameters);

static struct session *gate_session(struct qret_ctx *ctx)
{
	return &ctx->lanes[0].session;
}

static int move(struct qret_ctx *ctx, enum cycle_state state)
{
	ctx->cycle.state = state;
	ctx->cycle.asked = false;
	return QRET_MORE;
}

/* Where a plan goes when it is over, for better or worse: past the release, which every path takes. */
static int leave(struct qret_ctx *ctx)
{
	return move(ctx, STATE_RELEASE);
}

static int fail(struct qret_ctx *ctx, const struct error *error)
{
	if (ctx->cycle.error.code == QRET_DONE)
		ctx->cycle.error = *error;
	return leave(ctx);
}

static int stop(struct qret_ctx *ctx)
{
	ctx->cycle.stopped = true;
	return leave(ctx);
}

/*
 * Sends the state's statement the first time, then collects. QRET_DONE with an answer; QRET_WAIT;
 * QRET_STOPPED before anything was sent; or an error, told in `error`.
 */
static int ask(struct qret_ctx *ctx, bind_fn bind, struct pg_result **ret_answer, struct error *error)
{
	struct session *session = gate_session(ctx);
	struct parameters parameters = { 0 };
	const char *text;
	void *owner;
	int rc;

	if (!ctx->cycle.asked) {
		if (wake_stopped(&ctx->wake) && ctx->cycle.state != STATE_RELEASE)
			return QRET_STOPPED;
		text = bind(ctx, &parameters);
		rc = envelope_send(session, NULL, text, &parameters, ctx);
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

/* What most states do with a call of ask() that brought no answer. */
static int no_answer(struct qret_ctx *ctx, int rc, const struct error *error)
{
	if (rc == QRET_WAIT)
		return QRET_WAIT;
	return rc == QRET_STOPPED ? stop(ctx) : fail(ctx, error);
}

/* ---- OPEN ------------------------------------------------------------------------------------ */

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
		.wrapped = ctx->attached || context_number(ctx, OPTION_POOLER) == POOLER_TRANSACTION,
	};

	for (int i = 0; i < LANES_MAX; i++) {
		struct session *session = &ctx->lanes[i].session;

		if (!session->borrowed && session->state == SESSION_READY &&
		    !settings_equal(&session->settings, &settings) && !ctx->gate.held)
			session_abandon(session);
		session->settings = settings;
		session->settings_text = context_statement(ctx, STATEMENT_SETTINGS);
		session->log = &ctx->log;
		session->round_trips = 0;
	}
}

static int lost_gate(struct qret_ctx *ctx)
{
	struct error error;

	ctx->gate.held = ctx->gate.by_host = false;
	error_set(&error, QRET_ERR_LEADER_LOST, true, "take the gate again", "the session that held the gate is gone");
	return fail(ctx, &error);
}

static int run_open(struct qret_ctx *ctx)
{
	struct session *session = gate_session(ctx);
	struct error error;
	int rc;

	if (wake_stopped(&ctx->wake) && ctx->cycle.plan != PLAN_RELEASE) {
		if (session->state == SESSION_CONNECTING || session->state == SESSION_SETTING_UP)
			session_abandon(session);
		return stop(ctx);
	}
	if (ctx->attached) {
		rc = session->state == SESSION_READY ? QRET_DONE : session_adopt(session, &error);
	} else {
		if (session->state == SESSION_READY && !session_alive(session, ctx->gate.held)) {
			session_abandon(session);
			log_plain(&ctx->log, LOG_RECONNECT);
		}
		if (session->state == SESSION_CLOSED || session->state == SESSION_LOST) {
			if (ctx->gate.held && leader_is_session(ctx))
				return lost_gate(ctx);
			cycle_open_session(ctx, session);
		}
		rc = session_process(session, &error);
	}
	if (rc == QRET_WAIT)
		return QRET_WAIT;
	if (rc != QRET_DONE)
		return fail(ctx, &error);
	if (ctx->cycle.plan == PLAN_OPEN)
		return move(ctx, STATE_END);
	if (ctx->cycle.plan == PLAN_RELEASE)
		return leave(ctx);
	return move(ctx, STATE_FACTS);
}

/* ---- FACTS and VERSION ----------------------------------------------------------------------- */

static const char *bind_facts(struct qret_ctx *ctx, struct parameters *parameters)
{
	(void)parameters;
	return context_statement(ctx, STATEMENT_FACTS);
}

static bool runs(const struct qret_ctx *ctx, int engine)
{
	int64_t engines = context_number(ctx, OPTION_ENGINES);

	if (ctx->cycle.plan == PLAN_STEP)
		return phase_find(ctx->cycle.phase)->engine == engine;
	return ctx->cycle.plan == PLAN_WORKLIST ? engine == ENGINES_LOG : engines == ENGINES_BOTH || engines == engine;
}

static int schema_error(struct qret_ctx *ctx, const char *schema, const char *what)
{
	struct error error;

	error_set(&error, QRET_ERR_SCHEMA, false, "install the part, or check the options that name schemas and tables",
	          "schema %s: %s", schema, what);
	return fail(ctx, &error);
}

/* Whether all that this plan calls is there. */
static int check_facts(struct qret_ctx *ctx)
{
	const char *log_schema = option_text(&ctx->options, OPTION_LOG_SCHEMA);
	const char *event_schema = option_text(&ctx->options, OPTION_EVENT_SCHEMA);
	char missing[128];

	if (context_number(ctx, OPTION_GATE) == GATE_LEASE && !ctx->facts.is[FACT_LEASE] && ctx->cycle.plan != PLAN_WORKLIST)
		return schema_error(ctx, runs(ctx, ENGINES_LOG) ? log_schema : event_schema, "function retention_lease_claim_v1 is missing");
	if (ctx->cycle.plan == PLAN_TAKE)
		return QRET_DONE;
	if (runs(ctx, ENGINES_LOG) && !ctx->facts.is[FACT_LOG_TABLES])
		return schema_error(ctx, log_schema, "table log_partitions is missing");
	for (int32_t id = 1; id <= PHASE_COUNT && ctx->cycle.plan != PLAN_WORKLIST; id++) {
		const struct phase *phase = phase_find(id);
		const char *name;

		if (ctx->cycle.plan == PLAN_STEP ? id != ctx->cycle.phase : !runs(ctx, phase->engine))
			continue;
		name = phase_missing_function(ctx, phase);
		if (name == NULL)
			continue;
		snprintf(missing, sizeof(missing), "function %s_v%d is missing", name,
		         context_number(ctx, OPTION_STEP_VERSION) == STEP_VERSION_2 && phase->engine == ENGINES_LOG ? 2 : 1);
		return schema_error(ctx, phase->engine == ENGINES_LOG ? log_schema : event_schema, missing);
	}
	return QRET_DONE;
}

/* Where a plan goes once it knows the server. */
static int known(struct qret_ctx *ctx)
{
	switch (ctx->cycle.plan) {
	case PLAN_WORKLIST:
		return move(ctx, STATE_PAGE);
	case PLAN_STEP:
		return move(ctx, STATE_RUN);
	default:
		return move(ctx, STATE_GATE);
	}
}

/* The first part whose version is still to be checked: after `part`, NULL for none. */
static const char *next_part(const struct qret_ctx *ctx, const char *part)
{
	if (part == NULL && runs(ctx, ENGINES_LOG) && ctx->facts.is[FACT_LOG_VERSIONED])
		return "log";
	if ((part == NULL || part[0] == 'l') && runs(ctx, ENGINES_EVENT) && ctx->facts.is[FACT_EVENT_VERSIONED])
		return "event";
	return NULL;
}

static int run_facts(struct qret_ctx *ctx)
{
	struct pg_result *answer = NULL;
	struct error error;
	int rc = ask(ctx, bind_facts, &answer, &error);

	if (rc != QRET_DONE)
		return no_answer(ctx, rc, &error);
	facts_read(&ctx->facts, answer);
	result_free(answer);
	if (ctx->facts.is[FACT_READ_ONLY] && ctx->cycle.plan != PLAN_WORKLIST) {
		ctx->cycle.outcome = QRET_STANDBY;
		return leave(ctx);
	}
	if (check_facts(ctx) != QRET_DONE)
		return QRET_MORE;
	if (ctx->cycle.plan == PLAN_TAKE)
		return move(ctx, STATE_GATE);
	ctx->cycle.part = next_part(ctx, NULL);
	return ctx->cycle.part != NULL ? move(ctx, STATE_VERSION) : known(ctx);
}

static const char *bind_version(struct qret_ctx *ctx, struct parameters *parameters)
{
	parameter_text(parameters, ctx->cycle.part);
	return ctx->cycle.part[0] == 'e' ? ctx->statements.event_version : ctx->statements.log_version;
}

static int run_version(struct qret_ctx *ctx)
{
	struct pg_result *answer = NULL;
	struct error error;
	int rc = ask(ctx, bind_version, &answer, &error);
	int64_t version;

	if (rc != QRET_DONE)
		return no_answer(ctx, rc, &error);
	version = result_integer(answer, 0, 0, 0);
	result_free(answer);
	/* 0: nothing of ours is installed; a host's own functions serve by their contract. */
	if (version != 0 && version != SCHEMA_VERSION) {
		error_set(&error, QRET_ERR_SCHEMA, false,
		          version < SCHEMA_VERSION ? "install the part again" : "use a library that is as new as the schema",
		          "part \"%s\" is installed in version %lld, this library needs %d", ctx->cycle.part, (long long)version,
		          SCHEMA_VERSION);
		return fail(ctx, &error);
	}
	ctx->cycle.part = next_part(ctx, ctx->cycle.part);
	return ctx->cycle.part != NULL ? QRET_MORE : known(ctx);
}

/* ---- GATE ------------------------------------------------------------------------------------ */

static int next_phase(struct qret_ctx *ctx);

static int gate_passed(struct qret_ctx *ctx)
{
	if (ctx->cycle.plan == PLAN_TAKE)
		return move(ctx, STATE_END);
	ctx->cycle.phase = 0;
	if (runs(ctx, ENGINES_LOG))
		return move(ctx, STATE_PAGE);
	ctx->cycle.clock_us = ctx->facts.clock_us;
	return next_phase(ctx);
}

static int run_gate(struct qret_ctx *ctx)
{
	struct pg_result *answer = NULL;
	struct error error;
	int rc;

	if (ctx->gate.held || context_number(ctx, OPTION_GATE) == GATE_NONE) {
		ctx->gate.by_host = ctx->gate.by_host || ctx->cycle.plan == PLAN_TAKE;
		ctx->gate.held = ctx->gate.held || ctx->cycle.plan == PLAN_TAKE;
		return gate_passed(ctx);
	}
	rc = ask(ctx, leader_take_bind, &answer, &error);
	/* The steps of an earlier leader outlast our patience: give the claim back, it is tried again. */
	if (rc < 0 && ctx->gate.barrier && sqlstate_rule(error.sqlstate)->action == SQLSTATE_LOCKED) {
		ctx->cycle.outcome = QRET_BUSY;
		return leave(ctx);
	}
	if (rc != QRET_DONE)
		return no_answer(ctx, rc, &error);
	rc = leader_take_read(ctx, answer);
	result_free(answer);
	if (rc == QRET_MORE)
		return QRET_MORE;
	if (rc != QRET_DONE) {
		ctx->cycle.outcome = rc;
		return leave(ctx);
	}
	ctx->gate.by_host = ctx->cycle.plan == PLAN_TAKE;
	return gate_passed(ctx);
}

/* ---- PAGE, REFRESH, RUN ---------------------------------------------------------------------- */

static int run_page(struct qret_ctx *ctx)
{
	int64_t limit = context_number(ctx, OPTION_WORKLIST_LIMIT);
	struct pg_result *answer = NULL;
	struct error error;
	int rc = ask(ctx, pager_bind, &answer, &error);

	if (rc != QRET_DONE)
		return no_answer(ctx, rc, &error);
	pager_read(ctx, answer);
	result_free(answer);
	if (ctx->cycle.plan == PLAN_CYCLE)
		return next_phase(ctx);
	worklist_set_clock(ctx->cycle.list, ctx->cycle.clock_us);
	if (worklist_append(ctx->cycle.list, &ctx->pager, limit) != QRET_DONE) {
		error_set(&error, QRET_ERR_NOMEM, true, NULL, "out of memory");
		return fail(ctx, &error);
	}
	return ctx->pager.last || worklist_full(ctx->cycle.list, limit) ? leave(ctx) : QRET_MORE;
}

static int run_refresh(struct qret_ctx *ctx)
{
	struct pg_result *answer = NULL;
	struct error error;
	int rc = ask(ctx, pager_refresh_bind, &answer, &error);

	if (rc != QRET_DONE)
		return no_answer(ctx, rc, &error);
	pager_refresh_read(ctx, answer);
	result_free(answer);
	runner_continue(&ctx->runner);
	return move(ctx, STATE_RUN);
}

/* Starts a phase on the page's partitions or on its own units. */
static int begin_phase(struct qret_ctx *ctx, const struct phase *phase)
{
	if (phase->units == 0) {
		runner_begin(ctx, phase, ctx->pager.works, ctx->pager.count, false);
		return move(ctx, STATE_RUN);
	}
	memset(ctx->cycle.units, 0, sizeof(ctx->cycle.units));
	for (uint32_t i = 0; i < phase->units; i++)
		ctx->cycle.units[i].unit = i;
	if (phase->id == QRET_PHASE_EVENT_PRUNE)
		phase_reset_cursor(ctx, phase);
	runner_begin(ctx, phase, ctx->cycle.units, phase->units, false);
	return move(ctx, STATE_RUN);
}

/* Phases 1 to 3 on each page in turn, then the others. */
static int next_phase(struct qret_ctx *ctx)
{
	while (++ctx->cycle.phase <= PHASE_COUNT) {
		const struct phase *phase = phase_find(ctx->cycle.phase);

		if (!phase_enabled(ctx, phase))
			continue;
		if (phase->units > 0 && phase->engine == ENGINES_LOG && !ctx->pager.last) {
			ctx->cycle.phase = 0;
			return move(ctx, STATE_PAGE);
		}
		if (phase->begin == NULL || phase->begin(ctx))
			return begin_phase(ctx, phase);
	}
	return leave(ctx);
}

static int run_steps(struct qret_ctx *ctx)
{
	int rc = runner_process(ctx);

	if (rc != QRET_DONE)
		return rc;
	switch (ctx->runner.halt) {
	case HALT_STOPPED:
		ctx->cycle.stopped = !ctx->runner.has_outcome;
		return leave(ctx);
	case HALT_BUDGET:
		ctx->cycle.budget = true;
		return leave(ctx);
	case HALT_STALE:
		return move(ctx, STATE_REFRESH);
	case HALT_ERROR:
		/* A step by hand that only missed a lock is PARTIAL; why is still told. */
		if (ctx->runner.has_outcome)
			ctx->cycle.first_failure = ctx->runner.error;
		else
			return fail(ctx, &ctx->runner.error);
		return leave(ctx);
	default:
		return ctx->cycle.plan == PLAN_STEP ? leave(ctx) : next_phase(ctx);
	}
}

/* ---- RELEASE and END ------------------------------------------------------------------------- */

static int run_release(struct qret_ctx *ctx)
{
	struct session *session = gate_session(ctx);
	struct pg_result *answer = NULL;
	struct error error;
	int rc;

	if (!ctx->gate.held || (ctx->gate.by_host && ctx->cycle.plan != PLAN_RELEASE && !ctx->gate.barrier))
		return move(ctx, STATE_END);
	if (context_number(ctx, OPTION_GATE) == GATE_NONE) {
		ctx->gate.held = ctx->gate.by_host = false;
		return move(ctx, STATE_END);
	}
	if (session->state != SESSION_READY) {
		/* The backend's death has freed the lock, or will within the idle limit. */
		leader_release_failed(ctx, "the connection was lost while the gate was held");
		return move(ctx, STATE_END);
	}
	rc = ask(ctx, leader_release_bind, &answer, &error);
	if (rc == QRET_WAIT)
		return QRET_WAIT;
	if (rc != QRET_DONE)
		leader_release_failed(ctx, error.message);
	else if (!leader_release_read(ctx, answer))
		leader_release_failed(ctx, "the server says that this session did not hold the gate");
	result_free(answer);
	return move(ctx, STATE_END);
}

static int run_end(struct qret_ctx *ctx)
{
	return finish(ctx);
}

/* What each state does, what may follow it, and which answer it waits for. */
static const struct {
	const char *name;
	int (*run)(struct qret_ctx *ctx);
} states[] = {
	[STATE_OPEN] = { "open", run_open },          /* FACTS, RELEASE, END: a connection, or settings */
	[STATE_FACTS] = { "facts", run_facts },       /* VERSION, GATE, PAGE, RUN, RELEASE: facts.sql */
	[STATE_VERSION] = { "version", run_version }, /* VERSION, GATE, PAGE, RUN, RELEASE: schema_version.sql */
	[STATE_GATE] = { "gate", run_gate },          /* PAGE, RUN, RELEASE, END: gate_take.sql */
	[STATE_PAGE] = { "page", run_page },          /* PAGE, RUN, RELEASE: worklist_*.sql */
	[STATE_REFRESH] = { "refresh", run_refresh }, /* RUN, RELEASE: worklist_by_id.sql */
	[STATE_RUN] = { "run", run_steps },           /* PAGE, REFRESH, RUN, RELEASE: step_*.sql and the like */
	[STATE_RELEASE] = { "release", run_release }, /* END: gate_release.sql */
	[STATE_END] = { "end", run_end },             /* REST */
};

void cycle_start(struct qret_ctx *ctx, enum plan plan)
{
	struct cycle *cycle = &ctx->cycle;
	int32_t phase = cycle->phase;
	struct work unit = cycle->units[0];

	memset(cycle, 0, sizeof(*cycle));
	cycle->plan = plan;
	cycle->state = STATE_OPEN;
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
	ctx->cycle.state = STATE_REST;
	ctx->gate.held = ctx->gate.by_host = false;
}

bool cycle_in_progress(const struct qret_ctx *ctx)
{
	return ctx->cycle.state != STATE_REST;
}
