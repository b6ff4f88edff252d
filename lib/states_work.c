/* SPDX-License-Identifier: MIT */
/* The states that do the work: pages of the work list, and the steps of one phase after another. */
#include <string.h>

#include "states.h"

int states_begin_work(struct qret_ctx *ctx)
{
	ctx->cycle.phase = 0;
	ctx->cycle.prune_open = ctx->cycle.plan == PLAN_CYCLE;
	floors_begin(&ctx->floors);
	if (!state_runs(ctx, ENGINES_LOG)) {
		ctx->cycle.clock_us = ctx->facts.clock_us;
		return states_work_over(ctx);
	}
	if (!states_by_floors(ctx) || ctx->facts.is[FACT_READ_ONLY])
		return state_move(ctx, STATE_PAGE);
	floors_share_begin(&ctx->floors);
	ctx->cycle.clock_us = ctx->facts.clock_us;
	return state_move(ctx, STATE_WALK);
}

/* A page of the host's own list. */
static int list_page(struct qret_ctx *ctx)
{
	int64_t limit = context_number(ctx, OPTION_WORKLIST_LIMIT);
	bool by_floors = states_by_floors(ctx);
	struct error error;

	worklist_set_clock(ctx->cycle.list, ctx->cycle.clock_us);
	if (worklist_append(ctx->cycle.list, &ctx->pager, limit, by_floors) != QRET_DONE) {
		error_set(&error, QRET_ERR_NOMEM, true, NULL, "out of memory");
		return state_fail(ctx, &error);
	}
	if (ctx->pager.last || worklist_full(ctx->cycle.list, limit))
		return state_leave(ctx);
	return by_floors ? states_listed(ctx) : QRET_MORE;
}

/*
 * A read-only server keeps no floors of its own: a partition that no cycle has looked at is listed
 * by its policy, since it may be due.
 */
static bool lists_unknown(const struct qret_ctx *ctx)
{
	if (ctx->cycle.plan != PLAN_WORKLIST || !ctx->facts.is[FACT_READ_ONLY])
		return false;
	for (uint32_t i = 0; i < ctx->pager.count; i++) {
		if (!pager_stepped(&ctx->pager, ctx->pager.works[i].item.partition_id))
			return true;
	}
	return false;
}

int state_page(struct qret_ctx *ctx)
{
	struct pg_result *answer = NULL;
	struct error error;
	int rc;

	/* Steps heed the budget; a list of which nothing is to be stepped has none. */
	if (ctx->cycle.plan == PLAN_CYCLE && ctx->pager.read_us != 0 && !ctx->cycle.asked &&
	    cycle_budget_spent(ctx)) {
		ctx->cycle.budget = true;
		return state_leave(ctx);
	}
	rc = state_ask(ctx, pager_bind, &answer, &error);
	if (rc != QRET_DONE)
		return state_no_answer(ctx, rc, &error);
	pager_read(ctx, answer);
	result_free(answer);
	if (lists_unknown(ctx))
		return state_move(ctx, STATE_REFRESH);
	return ctx->cycle.plan == PLAN_CYCLE ? states_next_phase(ctx) : list_page(ctx);
}

int state_refresh(struct qret_ctx *ctx)
{
	struct pg_result *answer = NULL;
	struct error error;
	int rc = state_ask(ctx, pager_refresh_bind, &answer, &error);

	if (rc != QRET_DONE)
		return state_no_answer(ctx, rc, &error);
	pager_refresh_read(ctx, answer);
	result_free(answer);
	if (ctx->cycle.plan == PLAN_WORKLIST)
		return list_page(ctx);
	runner_continue(&ctx->runner);
	return state_move(ctx, STATE_RUN);
}

/* Starts a phase on its own units, from `first` on. */
static int begin_units(struct qret_ctx *ctx, const struct phase *phase, uint32_t first)
{
	memset(ctx->cycle.units, 0, sizeof(ctx->cycle.units));
	for (uint32_t i = first; i < phase->units; i++)
		ctx->cycle.units[i - first].unit = i;
	runner_begin(ctx, phase, ctx->cycle.units, phase->units - first, false);
	return state_move(ctx, STATE_RUN);
}

static int begin_phase(struct qret_ctx *ctx, const struct phase *phase)
{
	struct phase_state *state = &ctx->phases[phase->id - 1];

	if (phase->units == 0) {
		runner_begin(ctx, phase, ctx->pager.works, ctx->pager.count, false);
		return state_move(ctx, STATE_RUN);
	}
	/* One step beside a busy host goes on where the last one ended. */
	if (state->one_step)
		return begin_units(ctx, phase, state->unit);
	/* A whole prune leaves nothing to go on with. */
	if (phase->id == QRET_PHASE_EVENT_PRUNE) {
		state->unit = 0;
		phase_reset_cursor(ctx, phase);
	}
	return begin_units(ctx, phase, 0);
}

int states_work_over(struct qret_ctx *ctx)
{
	ctx->cycle.pages_over = true;
	ctx->cycle.phase = QRET_PHASE_MAX_WAIT;
	return states_next_phase(ctx);
}

/* Whether the server can still be asked for something after what ended the cycle. */
static bool is_survivable(const struct qret_ctx *ctx)
{
	const struct error *error = &ctx->cycle.error;

	if (ctx->lanes[0].session.state != SESSION_READY || strcmp(error->sqlstate, "25006") == 0)
		return false;
	return error->code == QRET_DONE || error->code == QRET_ERR_SQL ||
	       error->code == QRET_ERR_SCHEMA || error->code == QRET_ERR_PRIVILEGE ||
	       error->code == QRET_ERR_TIMEOUT;
}

/*
 * Where every cycle ends early, by a failure or by its budget, a prune that waits for the phases
 * before it would wait for ever.
 */
bool states_late_prune(struct qret_ctx *ctx)
{
	const struct phase *phase = phase_find(QRET_PHASE_EVENT_PRUNE);
	struct cycle *cycle = &ctx->cycle;

	if (!cycle->prune_open || cycle->stopped || !is_survivable(ctx))
		return false;
	cycle->prune_open = false;
	cycle->late_prune = true;
	cycle->phase = phase->id;
	if (cycle->clock_us == QRET_CUTOFF_OFF)
		cycle->clock_us = ctx->facts.clock_us;
	if (!phase_enabled(ctx, phase) || !phase->begin(ctx))
		return false;
	begin_phase(ctx, phase);
	return true;
}

/* Phases 1 to 3 on each page in turn, then the others. */
int states_next_phase(struct qret_ctx *ctx)
{
	while (++ctx->cycle.phase <= PHASE_COUNT) {
		const struct phase *phase = phase_find(ctx->cycle.phase);

		if (phase->units > 0 && !ctx->cycle.pages_over) {
			ctx->cycle.phase = 0;
			return states_page_over(ctx);
		}
		if (phase->id == QRET_PHASE_EVENT_PRUNE) {
			if (cycle_budget_spent(ctx))
				break;
			ctx->cycle.prune_open = false;
		}
		if (phase_enabled(ctx, phase) && (phase->begin == NULL || phase->begin(ctx)))
			return begin_phase(ctx, phase);
	}
	return state_leave(ctx);
}

/* A step by hand that found nothing: where floors list what is due, it would be listed again. */
static int step_over(struct qret_ctx *ctx)
{
	const struct runner *runner = &ctx->runner;

	if (runner->phase->units > 0 || !states_by_floors(ctx) || !runner->outcome.done ||
	    runner->outcome.deleted > 0 || ctx->cycle.stopped)
		return state_leave(ctx);
	floors_begin(&ctx->floors);
	floors_unsettle(&ctx->floors, ctx->cycle.units[0].item.partition_id);
	ctx->cycle.after_settle = STATE_RELEASE;
	ctx->cycle.clock_us = QRET_CUTOFF_OFF;
	return state_move(ctx, STATE_SETTLE);
}

int state_run(struct qret_ctx *ctx)
{
	int rc = runner_process(ctx);

	if (rc != QRET_DONE)
		return rc;
	switch (ctx->runner.halt) {
	case HALT_STOPPED:
		ctx->cycle.stopped = !ctx->runner.has_outcome;
		return ctx->cycle.plan == PLAN_STEP ? step_over(ctx) : state_leave(ctx);
	case HALT_BUDGET:
		ctx->cycle.budget = true;
		left_add_page(ctx);
		return state_leave(ctx);
	case HALT_STALE:
		return state_move(ctx, STATE_REFRESH);
	case HALT_ERROR:
		/* Demoted since the facts were read. */
		if (ctx->cycle.plan == PLAN_STEP &&
		    strcmp(ctx->runner.error.sqlstate, "25006") == 0) {
			ctx->cycle.outcome = QRET_STANDBY;
			ctx->facts.known = false;
			return state_leave(ctx);
		}
		/* A step by hand that only missed a lock is PARTIAL; why is still told. */
		if (ctx->runner.has_outcome)
			ctx->cycle.first_failure = ctx->runner.error;
		else
			return state_fail(ctx, &ctx->runner.error);
		return state_leave(ctx);
	default:
		if (ctx->cycle.plan == PLAN_STEP)
			return state_leave(ctx);
		ctx->cycle.budget |= ctx->cycle.late_prune && phase_prune_unfinished(ctx);
		return states_next_phase(ctx);
	}
}

int state_overdue(struct qret_ctx *ctx)
{
	struct pg_result *answer = NULL;
	struct error error;
	int rc = state_ask(ctx, overdue_bind, &answer, &error);

	if (rc == QRET_WAIT)
		return QRET_WAIT;
	/* Only a number for operators: without an answer the cycle is none the worse. */
	if (rc == QRET_DONE)
		overdue_read(ctx, answer);
	result_free(answer);
	return state_move(ctx, STATE_RELEASE);
}
