/* SPDX-License-Identifier: MIT */
/*
 * How large the next batch is, and how many a lane may have in flight: learned from what steps
 * take.
 */
#ifndef QRET_LIB_BATCH_H
#define QRET_LIB_BATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "work.h"

struct qret_ctx;
struct lane;

/* The size that a cycle's first step has. */
int32_t batch_first(const struct qret_ctx *ctx);

/* Rows that the next step of this item may delete; at least 1. */
int32_t batch_rows(const struct qret_ctx *ctx, const struct lane *lane, const struct work *work);

/* Whether the lane may have one more step in flight. */
bool batch_fits(const struct qret_ctx *ctx, const struct lane *lane);

/* Adapts size and window to one answer. */
void batch_learn(struct qret_ctx *ctx, struct lane *lane, int32_t rows,
                 const struct outcome *outcome);

#endif
