/* SPDX-License-Identifier: MIT */
/* Binds the parameters of each phase's step and reads its answer. Sends nothing. */
#ifndef QRET_LIB_STEP_H
#define QRET_LIB_STEP_H

#include <stdbool.h>
#include <stdint.h>

#include "value.h"
#include "work.h"

struct qret_ctx;

const char *step_bind_retention(struct qret_ctx *ctx, const struct work *work, int32_t rows,
                                bool guarded, struct parameters *parameters);
const char *step_bind_txns_purge(struct qret_ctx *ctx, const struct work *work, int32_t rows,
                                 bool guarded, struct parameters *parameters);
const char *step_bind_max_wait(struct qret_ctx *ctx, const struct work *work, int32_t rows,
                               bool guarded, struct parameters *parameters);
const char *step_bind_cleanup(struct qret_ctx *ctx, const struct work *work, int32_t rows,
                              bool guarded, struct parameters *parameters);
const char *step_bind_metrics_purge(struct qret_ctx *ctx, const struct work *work, int32_t rows,
                                    bool guarded, struct parameters *parameters);
const char *step_bind_event_prune(struct qret_ctx *ctx, const struct work *work, int32_t rows,
                                  bool guarded, struct parameters *parameters);

void step_read_partition(const struct pg_result *result, int32_t rows, struct outcome *ret_outcome);
void step_read_cleanup(const struct pg_result *result, int32_t rows, struct outcome *ret_outcome);
void step_read_metrics_purge(const struct pg_result *result, int32_t rows,
                             struct outcome *ret_outcome);
void step_read_event_prune(const struct pg_result *result, int32_t rows,
                           struct outcome *ret_outcome);

/* The name of a unit for log lines: a table, an arm. */
const char *step_metrics_table(uint32_t unit);
const char *step_event_arm(uint32_t unit);

#endif
