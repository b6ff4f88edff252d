/* SPDX-License-Identifier: MIT */
/* Failures of steps and of lanes. */
#ifndef QRET_LIB_FAILURE_H
#define QRET_LIB_FAILURE_H

#include "error.h"
#include "runner.h"

/* A step failed, its lane did not. */
void failure_handle(struct qret_ctx *ctx, struct lane *lane, struct slot *slot,
                    const struct error *error);

/* The lane's connection is gone: what flew on it is taken over by the others, if there are any. */
void failure_lost_lane(struct qret_ctx *ctx, struct lane *lane, const struct error *error);

#endif
