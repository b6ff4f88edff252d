/* SPDX-License-Identifier: MIT */
/* The states around the work: taking the gate, and giving it back on every path out. */
#include "sqlstate.h"
#include "states.h"

static int gate_passed(struct qret_ctx *ctx)
{
	return ctx->cycle.plan == PLAN_TAKE ? state_move(ctx, STATE_END) : states_begin_work(ctx);
}

int state_gate(struct qret_ctx *ctx)
{
	struct pg_result *answer = NULL;
	struct error error;
	int rc;

	/* A claim that has its barrier before it is not a gate yet. */
	if ((ctx->gate.held && !ctx->gate.barrier) ||
	    context_number(ctx, OPTION_GATE) == GATE_NONE) {
		ctx->gate.by_host = ctx->gate.by_host || ctx->cycle.plan == PLAN_TAKE;
		ctx->gate.held = ctx->gate.held || ctx->cycle.plan == PLAN_TAKE;
		if (context_number(ctx, OPTION_GATE) == GATE_NONE)
			leader_none(ctx);
		return gate_passed(ctx);
	}
	rc = state_ask(ctx, leader_take_bind, &answer, &error);
	/*
	 * The steps of an earlier leader outlast our patience: give the claim back, it is tried
	 * again.
	 */
	if (rc < 0 && ctx->gate.barrier &&
	    sqlstate_rule(error.sqlstate)->action == SQLSTATE_LOCKED) {
		ctx->cycle.outcome = QRET_BUSY;
		return state_leave(ctx);
	}
	if (rc != QRET_DONE)
		return state_no_answer(ctx, rc, &error);
	rc = leader_take_read(ctx, answer);
	result_free(answer);
	if (rc == QRET_MORE)
		return QRET_MORE;
	if (rc != QRET_DONE) {
		ctx->cycle.outcome = rc;
		return state_leave(ctx);
	}
	ctx->gate.by_host = ctx->cycle.plan == PLAN_TAKE;
	return gate_passed(ctx);
}

int state_release(struct qret_ctx *ctx)
{
	struct session *session = &ctx->lanes[0].session;
	struct pg_result *answer = NULL;
	struct error error;
	int rc;

	if (!ctx->gate.held ||
	    (ctx->gate.by_host && ctx->cycle.plan != PLAN_RELEASE && !ctx->gate.barrier))
		return state_move(ctx, STATE_END);
	if (context_number(ctx, OPTION_GATE) == GATE_NONE) {
		leader_forget(&ctx->gate);
		return state_move(ctx, STATE_END);
	}
	if (session->state != SESSION_READY) {
		/* The backend's death has freed the lock, or will within the idle limit. */
		leader_release_failed(ctx, "the connection was lost while the gate was held");
		return state_move(ctx, STATE_END);
	}
	rc = state_ask(ctx, leader_release_bind, &answer, &error);
	if (rc == QRET_WAIT)
		return QRET_WAIT;
	if (rc != QRET_DONE)
		leader_release_failed(ctx, error.message);
	else if (!leader_release_read(ctx, answer))
		leader_release_failed(ctx,
		                      "the server says that this session did not hold the gate");
	result_free(answer);
	return state_move(ctx, STATE_END);
}
