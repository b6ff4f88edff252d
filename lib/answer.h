/* SPDX-License-Identifier: MIT */
/* Answers of steps. */
#ifndef QRET_LIB_ANSWER_H
#define QRET_LIB_ANSWER_H

#include "runner.h"

/* Counts it, adapts to it, and settles the slot's item if nothing is left to do for it. */
void answer_handle(struct qret_ctx *ctx, struct lane *lane, struct slot *slot,
                   const struct pg_result *result);

#endif
