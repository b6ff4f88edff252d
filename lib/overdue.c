/* SPDX-License-Identifier: MIT */
/* Remembers some of what was left and asks once, at the end of a cycle that left anything. */
#include "overdue.h"

#include <string.h>

#include "context.h"
#include "uuid.h"

void left_add(struct left *left, const uint8_t *id)
{
	if (left->count < LEFT_MOST)
		memcpy(left->ids[left->count++], id, UUID_BYTES);
}

void left_add_page(struct qret_ctx *ctx)
{
	const struct runner *runner = &ctx->runner;

	for (uint32_t i = 0; runner->phase->units == 0 && i < runner->count; i++) {
		if (!runner->works[i].settled && runner->phase->applies(ctx, &runner->works[i]))
			left_add(&ctx->cycle.left, runner->works[i].item.partition_id);
	}
}

bool overdue_wanted(const struct qret_ctx *ctx)
{
	return ctx->cycle.plan == PLAN_CYCLE && ctx->cycle.left.count > 0 &&
	       ctx->cycle.error.code == QRET_DONE && !ctx->cycle.stopped &&
	       ctx->lanes[0].session.state == SESSION_READY;
}

const char *overdue_bind(struct qret_ctx *ctx, struct parameters *parameters)
{
	struct left *left = &ctx->cycle.left;

	uuid_array_begin(left->array, left->count);
	for (uint32_t i = 0; i < left->count; i++)
		uuid_array_set(left->array, i, left->ids[i]);
	parameter_timestamp(parameters, ctx->cycle.clock_us);
	parameter_uuid_array(parameters, left->array, left->count);
	return context_statement(ctx, STATEMENT_OVERDUE);
}

void overdue_read(struct qret_ctx *ctx, const struct pg_result *result)
{
	ctx->report.oldest_overdue_us = result_integer(result, 0, 0, 0);
}
