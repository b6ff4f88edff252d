/* SPDX-License-Identifier: MIT */
/* Failures of steps and of lanes. */
#ifndef QRET_LIB_FAILURE_H
#define QRET_LIB_FAILURE_H

#include "error.h"
#include "runner.h"

/* A step failed, its lane did not. */
void failure_handle(struct qret_ctx *ctx, struct lane *lane, struct slot *slot,
                    const struct error *error);

/*
 * Events, or partitions of the clean-up, that a step could not delete; what else there was of its
 * batch it did.
 */
void failure_of_rows(struct qret_ctx *ctx, const struct work *work, const struct outcome *outcome);

/* The prune leaves an arm for now, where no event failed and all were locked: its next run goes on. */
void failure_of_locks(struct qret_ctx *ctx, const struct work *work);

/* Its steps failed in the cycles before, so it is left out of this one. */
void failure_of_backed_off(struct qret_ctx *ctx, struct work *work);

/* A statement that keeps floors true failed: its partitions wait for the next cycle. */
void failure_of_floors(struct qret_ctx *ctx, const struct error *error);

/* The lane's connection is gone: what flew on it is taken over by the others, if there are any. */
void failure_lost_lane(struct qret_ctx *ctx, struct lane *lane, const struct error *error);

#endif
