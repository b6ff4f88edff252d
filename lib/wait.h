/* SPDX-License-Identifier: MIT */
/* Descriptors, deadlines, and the one poll(2) of the library. */
#ifndef QRET_LIB_WAIT_H
#define QRET_LIB_WAIT_H

#include <stdint.h>

struct qret_ctx;
struct session;

/* The earliest of all timers of the running plan. */
int64_t wait_deadline_us(const struct qret_ctx *ctx);

/*
 * Sleeps until a descriptor of the context is ready, the deadline passed, a stop or a signal
 * came.
 */
void wait_once(struct qret_ctx *ctx, int64_t deadline_us);

/* Sleeps until one session's socket is ready or its deadline passed. */
void wait_session(struct qret_ctx *ctx, const struct session *session);

#endif
