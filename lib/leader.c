/* SPDX-License-Identifier: MIT */
/*
 * Three gates. session: an advisory lock on lane 0, which needs no table and dies with its backend.
 * lease: a row on the server's clock, whose fence travels with every step. none: the host elects.
 */
#include "leader.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "clock.h"
#include "context.h"
#include "sqlstate.h"

static bool is_lease(const struct qret_ctx *ctx)
{
	return context_number(ctx, OPTION_GATE) == GATE_LEASE;
}

bool leader_is_session(const struct qret_ctx *ctx)
{
	return context_number(ctx, OPTION_GATE) == GATE_SESSION;
}

/* Unique in the cluster for as long as a lease may live. */
void leader_init(struct gate *gate)
{
	uint64_t random = (uint64_t)qret_now_us();

	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != (ssize_t)sizeof(random))
		random ^= (uint64_t)(uintptr_t)gate << 20;
	snprintf(gate->holder, sizeof(gate->holder), "%ld-%016" PRIx64, (long)getpid(), random);
	gate->wait_ms = -1;
}

/* At most one interval: a lease that outlived it would be the cadence's only limit. */
static int64_t lease_ms(const struct qret_ctx *ctx)
{
	int64_t interval_ms = context_number(ctx, OPTION_INTERVAL_MS);
	int64_t own_ms = context_number(ctx, OPTION_LEASE_MS);

	return own_ms == 0 || own_ms > interval_ms ? interval_ms : own_ms;
}

/*
 * Lane 0 may idle while the others work: asked for a sign of life, its session neither dies of
 * that nor unseen.
 */
static int64_t sign_of_life_ms(const struct qret_ctx *ctx)
{
	int64_t idle_limit_ms = context_number(ctx, OPTION_IDLE_LIMIT_MS);

	return idle_limit_ms > 0 ? idle_limit_ms / 3 : 10000;
}

static void renew_later(struct qret_ctx *ctx)
{
	/* Never nothing: a lease of a few milliseconds would be renewed for ever, and no more. */
	int64_t pause_ms = is_lease(ctx) ? lease_ms(ctx) / 3 + 1 : sign_of_life_ms(ctx);

	ctx->gate.renew_us = clock_after_ms(qret_now_us(), pause_ms);
}

void leader_none(struct qret_ctx *ctx)
{
	renew_later(ctx);
}

const char *leader_take_bind(struct qret_ctx *ctx, struct parameters *parameters)
{
	int64_t key = context_number(ctx, OPTION_GATE_KEY);

	if (!is_lease(ctx) || ctx->gate.barrier) {
		parameter_int8(parameters, key);
		return context_statement(ctx, is_lease(ctx) ? STATEMENT_LEASE_BARRIER
		                                            : STATEMENT_GATE_TAKE);
	}
	parameter_text(parameters, ctx->gate.holder);
	parameter_int8(parameters, lease_ms(ctx));
	parameter_int8(parameters, context_number(ctx, OPTION_INTERVAL_MS));
	parameter_int8(parameters, key);
	return context_statement(ctx, STATEMENT_LEASE_CLAIM);
}

static int read_claim(struct qret_ctx *ctx, const struct pg_result *result)
{
	char state[16];

	result_text(result, 0, 0, state, sizeof(state));
	ctx->gate.held = strcmp(state, "granted") == 0;
	ctx->gate.fence = result_integer(result, 0, 1, 0);
	ctx->gate.barrier = result_bool(result, 0, 2);
	ctx->gate.clean = !ctx->gate.barrier;
	ctx->gate.renewing = false;
	ctx->gate.wait_ms = result_integer(result, 0, 3, 0);
	renew_later(ctx);
	if (!ctx->gate.held)
		return strcmp(state, "paused") == 0 ? QRET_PAUSED : QRET_BUSY;
	ctx->gate.wait_ms = -1;
	return ctx->gate.barrier ? QRET_MORE : QRET_DONE;
}

int leader_take_read(struct qret_ctx *ctx, const struct pg_result *result)
{
	if (is_lease(ctx) && !ctx->gate.barrier)
		return read_claim(ctx, result);
	ctx->gate.barrier = false;
	ctx->gate.clean = true;
	ctx->gate.held = result_bool(result, 0, 0);
	if (!is_lease(ctx))
		renew_later(ctx);
	return ctx->gate.held ? QRET_DONE : QRET_BUSY;
}

/* Whether what the claim was for is not done, so that the next cycle is due at once. */
static bool hands_over(const struct qret_ctx *ctx)
{
	bool by_hand = ctx->cycle.plan == PLAN_RELEASE;

	return ctx->cycle.stopped || ctx->gate.barrier || (by_hand && wake_stopped(&ctx->wake));
}

const char *leader_release_bind(struct qret_ctx *ctx, struct parameters *parameters)
{
	if (!is_lease(ctx)) {
		parameter_int8(parameters, context_number(ctx, OPTION_GATE_KEY));
		return context_statement(ctx, STATEMENT_GATE_RELEASE);
	}
	parameter_int8(parameters, ctx->gate.fence);
	parameter_bool(parameters, hands_over(ctx));
	parameter_bool(parameters, ctx->gate.clean);
	return context_statement(ctx, STATEMENT_LEASE_RELEASE);
}

void leader_forget(struct gate *gate)
{
	gate->held = gate->by_host = gate->barrier = gate->renewing = false;
}

bool leader_release_read(struct qret_ctx *ctx, const struct pg_result *result)
{
	leader_forget(&ctx->gate);
	return result_bool(result, 0, 0);
}

void leader_release_failed(struct qret_ctx *ctx, const char *why)
{
	struct line line;

	leader_forget(&ctx->gate);
	/* A lease ends by itself; a session lock only with its session. */
	if (leader_is_session(ctx))
		session_abandon(&ctx->lanes[0].session);
	if (!log_wants(&ctx->log, LOG_RELEASE_FAILED))
		return;
	log_begin(&line, LOG_RELEASE_FAILED);
	line_text(&line, "message", why);
	log_end(&ctx->log, LOG_RELEASE_FAILED, &line);
}

void leader_envelope(const struct qret_ctx *ctx, struct envelope *ret_envelope)
{
	ret_envelope->often = true;
	ret_envelope->fenced = is_lease(ctx) && ctx->gate.held;
	ret_envelope->fence = ctx->gate.fence;
	ret_envelope->key = context_number(ctx, OPTION_GATE_KEY);
	ret_envelope->fence_text = context_statement(ctx, STATEMENT_LEASE_FENCE);
}

int64_t leader_renew_due_us(const struct qret_ctx *ctx)
{
	bool leads = context_number(ctx, OPTION_GATE) == GATE_NONE ? ctx->cycle.plan == PLAN_CYCLE
	                                                           : ctx->gate.held;

	return leads && !ctx->gate.renewing ? ctx->gate.renew_us : NO_DEADLINE;
}

const char *leader_renew_bind(struct qret_ctx *ctx, struct parameters *parameters)
{
	ctx->gate.renewing = true;
	if (!is_lease(ctx))
		return "SELECT true";
	parameter_int8(parameters, ctx->gate.fence);
	parameter_int8(parameters, lease_ms(ctx));
	return context_statement(ctx, STATEMENT_LEASE_RENEW);
}

void leader_renew_failed(struct qret_ctx *ctx)
{
	ctx->gate.renewing = false;
	renew_later(ctx);
}

static bool renew_read(struct qret_ctx *ctx, const struct pg_result *result, struct error *error)
{
	ctx->gate.renewing = false;
	renew_later(ctx);
	if (result_bool(result, 0, 0))
		return true;
	leader_forget(&ctx->gate);
	error_set(error, QRET_ERR_LEADER_LOST, true,
	          "another instance took the lease over; it leads now", "the lease was lost");
	return false;
}

bool leader_renewed(struct qret_ctx *ctx, int rc, const struct pg_result *result,
                    struct error *error)
{
	enum sqlstate_action action;

	if (rc == QRET_DONE)
		return renew_read(ctx, result, error);
	leader_renew_failed(ctx);
	/* Another is tried later; should the lease run out meanwhile, the fence says so. */
	action = sqlstate_rule(error->sqlstate)->action;
	return action != SQLSTATE_CYCLE && action != SQLSTATE_PERMANENT;
}

bool leader_lease_is_old(const struct qret_ctx *ctx)
{
	return is_lease(ctx) && qret_now_us() >= leader_renew_due_us(ctx);
}
