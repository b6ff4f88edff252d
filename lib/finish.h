/* SPDX-License-Identifier: MIT */
/* The end of a plan: one outcome from all that happened, told once to caller, log and metrics. */
#ifndef QRET_LIB_FINISH_H
#define QRET_LIB_FINISH_H

struct qret_ctx;

/* Puts the context to rest and returns the outcome. */
int finish(struct qret_ctx *ctx);

#endif
