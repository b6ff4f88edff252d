/* SPDX-License-Identifier: MIT */
/* The gate: who may sweep. Binds and reads; sending and waiting are the cycle's. */
#ifndef QRET_LIB_LEADER_H
#define QRET_LIB_LEADER_H

#include <stdbool.h>
#include <stdint.h>

#include "envelope.h"
#include "value.h"

struct qret_ctx;

struct gate {
	bool    held;
	bool    by_host; /* taken by qret_gate_take: a cycle uses and keeps it */
};

/* The statement that takes or releases the gate; NULL where none is needed. */
const char *leader_take_bind(struct qret_ctx *ctx, struct parameters *parameters);
const char *leader_release_bind(struct qret_ctx *ctx, struct parameters *parameters);

/* QRET_DONE or QRET_BUSY. */
int leader_take_read(struct qret_ctx *ctx, const struct pg_result *result);

/* Whether the release is confirmed. */
bool leader_release_read(struct qret_ctx *ctx, const struct pg_result *result);

/* A release that could not be confirmed: the session that may still hold the gate is closed, or tainted. */
void leader_release_failed(struct qret_ctx *ctx, const char *why);

/* The fence that a step travels with. */
void leader_envelope(const struct qret_ctx *ctx, struct envelope *ret_envelope);

#endif
