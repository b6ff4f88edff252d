/* SPDX-License-Identifier: MIT */
/*
 * The session gate is an advisory lock on lane 0: it needs no table and dies with its backend.
 * With gate = none the host elects, and both halves are no-ops.
 */
#include "leader.h"

#include "context.h"

static const char *bind(struct qret_ctx *ctx, enum statement statement, struct parameters *parameters)
{
	if (context_number(ctx, OPTION_GATE) == GATE_NONE)
		return NULL;
	parameter_int8(parameters, context_number(ctx, OPTION_GATE_KEY));
	return context_statement(ctx, statement);
}

const char *leader_take_bind(struct qret_ctx *ctx, struct parameters *parameters)
{
	return bind(ctx, STATEMENT_GATE_TAKE, parameters);
}

const char *leader_release_bind(struct qret_ctx *ctx, struct parameters *parameters)
{
	return bind(ctx, STATEMENT_GATE_RELEASE, parameters);
}

int leader_take_read(struct qret_ctx *ctx, const struct pg_result *result)
{
	ctx->gate.held = result_bool(result, 0, 0);
	return ctx->gate.held ? QRET_DONE : QRET_BUSY;
}

bool leader_release_read(struct qret_ctx *ctx, const struct pg_result *result)
{
	ctx->gate.held = ctx->gate.by_host = false;
	return result_bool(result, 0, 0);
}

void leader_release_failed(struct qret_ctx *ctx, const char *why)
{
	struct line line;

	ctx->gate.held = ctx->gate.by_host = false;
	session_abandon(&ctx->lanes[0].session);
	if (!log_wants(&ctx->log, LOG_RELEASE_FAILED))
		return;
	log_begin(&line, LOG_RELEASE_FAILED);
	line_text(&line, "message", why);
	log_end(&ctx->log, LOG_RELEASE_FAILED, &line);
}

void leader_envelope(const struct qret_ctx *ctx, struct envelope *ret_envelope)
{
	(void)ctx;
	ret_envelope->fenced = false;
}
