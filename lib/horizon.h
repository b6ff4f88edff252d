/* SPDX-License-Identifier: MIT */
/* Whether what was deleted can be vacuumed, or an old snapshot keeps it in the tables. */
#ifndef QRET_LIB_HORIZON_H
#define QRET_LIB_HORIZON_H

#include <stdbool.h>
#include <stdint.h>

struct pg_result;
struct qret_ctx;

struct horizon {
	int64_t next_us; /* when to look again */
	bool looked;     /* the facts that are under way are asked for it */
	bool told;       /* once, until it ends */
};

/* Whether the facts are to be asked for it this time; once a minute of cycles. */
bool horizon_look(struct qret_ctx *ctx);

/* Takes the answer of client/facts.sql, and says so where vacuum is blocked. */
void horizon_read(struct qret_ctx *ctx, const struct pg_result *result);

#endif
