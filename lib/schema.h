/* SPDX-License-Identifier: MIT */
/* Opens lane 0 for calls that send statements of their own; see schema.c. */
#ifndef QRET_LIB_SCHEMA_H
#define QRET_LIB_SCHEMA_H

struct qret_ctx;

/* Checks, then connects within the limits: QRET_DONE, QRET_STOPPED or an error. */
int context_open(struct qret_ctx *ctx);

#endif
