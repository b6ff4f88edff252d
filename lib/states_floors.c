/* SPDX-License-Identifier: MIT */
/*
 * The states that keep the floors true: the slow walk, which pinned partitions are free again,
 * what stepping found.
 */
#include "failure.h"
#include "sqlstate.h"
#include "states.h"

bool states_by_floors(const struct qret_ctx *ctx)
{
	int64_t wanted = context_number(ctx, OPTION_WORK_LIST);

	return wanted == WORK_LIST_DUE || (wanted == WORK_LIST_AUTO && ctx->facts.is[FACT_FLOORS]);
}

/* Where to go with ids to bring up to date, and where without. */
static int settle_then(struct qret_ctx *ctx, enum cycle_state state)
{
	ctx->cycle.after_settle = state;
	return state_move(ctx, ctx->floors.unsettled.count > 0 ? STATE_SETTLE : state);
}

/* What failed by itself, and not for a reason that ends the cycle. */
static bool is_local(const struct qret_ctx *ctx, const struct error *error)
{
	enum sqlstate_action action = sqlstate_rule(error->sqlstate)->action;

	return ctx->lanes[0].session.state == SESSION_READY &&
	       error->code != QRET_ERR_LEADER_LOST && action != SQLSTATE_CYCLE &&
	       action != SQLSTATE_PERMANENT;
}

/*
 * After a statement that failed: whether it is sent again with fewer partitions. If not, they have
 * lost their turn, which is as bad as a step that failed: what nobody looks at is never deleted.
 */
static bool is_smaller_tried(struct qret_ctx *ctx, enum floors_kind kind, const struct error *error)
{
	enum sqlstate_action action = sqlstate_rule(error->sqlstate)->action;

	if ((action == SQLSTATE_SHRINK || action == SQLSTATE_ITEM) &&
	    floors_shrink(&ctx->floors, kind))
		return true;
	failure_of_floors(ctx, error);
	return false;
}

int state_pinned(struct qret_ctx *ctx)
{
	struct pg_result *answer = NULL;
	struct error error;
	int rc = state_ask(ctx, floors_pinned_bind, &answer, &error);
	bool over;

	if (rc < 0 && is_local(ctx, &error)) {
		if (is_smaller_tried(ctx, FLOORS_PINNED, &error))
			return QRET_MORE;
		floors_round_failed(&ctx->floors.pinned);
		return settle_then(ctx, STATE_PAGE);
	}
	if (rc != QRET_DONE)
		return state_no_answer(ctx, rc, &error);
	over = floors_pinned_read(ctx, answer);
	result_free(answer);
	return over ? settle_then(ctx, STATE_PAGE) : settle_then(ctx, STATE_PINNED);
}

int state_settle(struct qret_ctx *ctx)
{
	struct pg_result *answer = NULL;
	struct error error;
	int rc = state_ask(ctx, floors_settle_bind, &answer, &error);

	if (rc < 0 && is_local(ctx, &error)) {
		if (is_smaller_tried(ctx, FLOORS_SETTLE, &error))
			return QRET_MORE;
		floors_settle_failed(&ctx->floors);
	} else if (rc != QRET_DONE) {
		return state_no_answer(ctx, rc, &error);
	} else {
		floors_settle_read(ctx, answer);
	}
	result_free(answer);
	return settle_then(ctx, ctx->cycle.after_settle);
}

int state_walk(struct qret_ctx *ctx)
{
	struct pg_result *answer = NULL;
	struct error error;
	int rc = state_ask(ctx, floors_walk_bind, &answer, &error);
	bool over;

	if (rc < 0 && is_local(ctx, &error)) {
		if (is_smaller_tried(ctx, FLOORS_WALK, &error))
			return QRET_MORE;
		floors_round_failed(&ctx->floors.walk);
		return state_move(ctx, STATE_PINNED);
	}
	if (rc != QRET_DONE)
		return state_no_answer(ctx, rc, &error);
	over = floors_walk_read(ctx, answer);
	result_free(answer);
	return over ? state_move(ctx, STATE_PINNED) : QRET_MORE;
}

int states_page_over(struct qret_ctx *ctx)
{
	if (ctx->pager.last)
		return states_work_over(ctx);
	if (!states_by_floors(ctx))
		return state_move(ctx, STATE_PAGE);
	if (floors_page_over(ctx))
		return settle_then(ctx, STATE_PAGE);
	/* A page that led to nothing would only come again: on to the phases after the pages. */
	ctx->cycle.pages_over = true;
	ctx->cycle.phase = QRET_PHASE_MAX_WAIT;
	return settle_then(ctx, STATE_RUN);
}

int states_listed(struct qret_ctx *ctx)
{
	floors_page_listed(ctx);
	/* What is due beyond what can be left out is in the host's next list. */
	if (ctx->floors.excluded.count >= EXCLUDED_MOST)
		return state_leave(ctx);
	return settle_then(ctx, STATE_PAGE);
}
