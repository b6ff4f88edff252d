/* SPDX-License-Identifier: MIT */
/* What a cycle left behind, and how long overdue that is: the number an operator watches. */
#ifndef QRET_LIB_OVERDUE_H
#define QRET_LIB_OVERDUE_H

#include <stdbool.h>
#include <stdint.h>

#include "value.h"

#define LEFT_MOST 64 /* partitions that are asked about; the first ones met */

struct qret_ctx;

struct left {
	uint32_t count;
	uint8_t ids[LEFT_MOST][16];
	uint8_t array[20 + LEFT_MOST * 20]; /* the same on the wire */
};

void left_add(struct left *left, const uint8_t *id);

/* The items of the page at hand that are not done. */
void left_add_page(struct qret_ctx *ctx);

/* Whether there is something to ask, and somebody to ask. */
bool overdue_wanted(const struct qret_ctx *ctx);

const char *overdue_bind(struct qret_ctx *ctx, struct parameters *parameters);
void overdue_read(struct qret_ctx *ctx, const struct pg_result *result);

#endif
