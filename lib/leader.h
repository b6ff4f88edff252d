/* SPDX-License-Identifier: MIT */
/*
 * The gate: who may sweep. Binds and reads; sending and waiting are the cycle's and the
 * runner's.
 */
#ifndef QRET_LIB_LEADER_H
#define QRET_LIB_LEADER_H

#include <stdbool.h>
#include <stdint.h>

#include "envelope.h"
#include "error.h"
#include "value.h"

struct qret_ctx;

struct gate {
	bool held;
	bool by_host;     /* taken by qret_gate_take: a cycle uses and keeps it */
	char holder[40];  /* lease: this context's name for itself */
	int64_t fence;    /* lease: of the claim that is held */
	bool clean;       /* lease: no step of any claim so far can be under way unseen */
	bool barrier;     /* lease: claimed, but the steps of an earlier claim may be under way */
	bool renewing;    /* lease: a renewal is in flight */
	int64_t renew_us; /* lease: when to renew, on our clock */
	int64_t wait_ms;  /* lease: when another try makes sense; -1: not told */
};

void leader_init(struct gate *gate);

/*
 * The statement to send next to take the gate, or to release it. Not for gate = none, which has
 * neither.
 */
const char *leader_take_bind(struct qret_ctx *ctx, struct parameters *parameters);
const char *leader_release_bind(struct qret_ctx *ctx, struct parameters *parameters);

/* QRET_DONE: held; QRET_BUSY; QRET_PAUSED; QRET_MORE: bind and send again. */
int leader_take_read(struct qret_ctx *ctx, const struct pg_result *result);

/* Whether the release is confirmed. */
bool leader_release_read(struct qret_ctx *ctx, const struct pg_result *result);

/*
 * A release that could not be confirmed: a session that may still hold the gate is closed, or
 * tainted.
 */
void leader_release_failed(struct qret_ctx *ctx, const char *why);

/* The gate is not ours any more, or never was. */
void leader_forget(struct gate *gate);

/* Whether losing lane 0 loses the gate at once. */
bool leader_is_session(const struct qret_ctx *ctx);

/* There is no gate to take: from here on lane 0 is kept alive all the same. */
void leader_none(struct qret_ctx *ctx);

/* The fence that a step travels with. */
void leader_envelope(const struct qret_ctx *ctx, struct envelope *ret_envelope);

/*
 * Renewals (without a lease: a sign of life), sent between steps: when the next is due
 * (INT64_MAX: never), its statement, whether the claim stands.
 */
int64_t leader_renew_due_us(const struct qret_ctx *ctx);
const char *leader_renew_bind(struct qret_ctx *ctx, struct parameters *parameters);
void leader_renew_failed(struct qret_ctx *ctx);

/* Takes the answer to a renewal, or its failure `rc`; false, and why in `error`: the cycle is over. */
bool leader_renewed(struct qret_ctx *ctx, int rc, const struct pg_result *result,
                    struct error *error);

/* Whether a lease wants to be renewed before anything else is sent. */
bool leader_lease_is_old(const struct qret_ctx *ctx);

#endif
