/* SPDX-License-Identifier: MIT */
/*
 * Deleted rows that no VACUUM may remove make every index scan longer, ours and the broker's, and
 * nothing here can help: an operator has to end the transaction. It is a column of the facts, since
 * a look a minute is not worth a statement of its own.
 */
#include "horizon.h"

#include "clock.h"
#include "context.h"

#define LOOK_MS   60000
#define MANY_ROWS 10000 /* fewer are no matter */

bool horizon_look(struct qret_ctx *ctx)
{
	struct horizon *horizon = &ctx->horizon;
	int64_t now_us = qret_now_us();

	horizon->looked = ctx->cycle.plan == PLAN_CYCLE && now_us >= horizon->next_us;
	if (horizon->looked)
		horizon->next_us = clock_after_ms(now_us, LOOK_MS);
	return horizon->looked;
}

static void tell(struct qret_ctx *ctx, const struct pg_result *result)
{
	struct line line;

	if (!log_wants(&ctx->log, LOG_VACUUM_BLOCKED))
		return;
	log_begin(&line, LOG_VACUUM_BLOCKED);
	line_number(&line, "dead_rows", ctx->metrics.met.dead_rows);
	line_number(&line, "held_ms", ctx->metrics.met.held_us / US_PER_MS);
	if (!result_is_null(result, 0, FACT_COUNT + 3))
		line_number(&line, "pid", result_integer(result, 0, FACT_COUNT + 3, 0));
	log_end(&ctx->log, LOG_VACUUM_BLOCKED, &line);
}

void horizon_read(struct qret_ctx *ctx, const struct pg_result *result)
{
	struct horizon *horizon = &ctx->horizon;
	struct met *met = &ctx->metrics.met;
	bool blocked;

	if (!horizon->looked)
		return;
	met->dead_rows = result_integer(result, 0, FACT_COUNT + 1, 0);
	met->held_us = result_integer(result, 0, FACT_COUNT + 2, 0);
	/* A transaction that outlasts an interval is none of the broker's daily work. */
	blocked = met->dead_rows >= MANY_ROWS &&
	          met->held_us >= context_number(ctx, OPTION_INTERVAL_MS) * US_PER_MS;
	if (blocked && !horizon->told)
		tell(ctx, result);
	horizon->told = blocked;
}
