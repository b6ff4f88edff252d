/* SPDX-License-Identifier: MIT */
/*
 * Keeps bounded steps in flight on the lanes, repeats an item until it is done, and keeps one
 * item's failure from the others. Knows phases only through their rows, and sends nothing but
 * steps.
 */
#ifndef QRET_LIB_RUNNER_H
#define QRET_LIB_RUNNER_H

#include <stdbool.h>
#include <stdint.h>

#include "backoff.h"
#include "error.h"
#include "idset.h"
#include "phase.h"
#include "session.h"
#include "work.h"

/* An item in the hands of a lane: from its first step there to its last. */
struct slot {
	struct work *work; /* NULL: free */
	int32_t rows;      /* of the step in flight */
	bool flying;
};

struct lane {
	struct session session;
	struct slot slots[SESSION_REQUESTS_MAX];
	uint32_t window; /* steps it may have in flight */
	uint32_t flying;
	int32_t rows; /* size of the next batch, from what the last ones took */
	int64_t rows_flying;
	bool given_up; /* could not be opened, or was lost, in this cycle */
};

/* Why nothing more is sent. */
enum halt { HALT_NONE, HALT_STOPPED, HALT_BUDGET, HALT_STALE, HALT_ERROR };

struct runner {
	const struct phase *phase;
	struct work *works;
	int64_t begun_us;     /* of this run */
	int64_t looked_us;    /* when runner_process last began to look around */
	uint32_t count, next; /* items of this run; the first that no lane has had */
	uint32_t orphans;     /* items that a lost lane left behind */
	bool single;          /* one step by hand, not a cycle */
	enum halt halt;
	struct error error; /* with HALT_ERROR: why */

	struct outcome outcome; /* single: what the step came to */
	bool has_outcome;

	/* across the phases of a cycle */
	int64_t pace_us;  /* nothing is sent before */
	char sqlstate[6]; /* of the failures in a row */
	uint32_t sqlstate_count;
	struct idset queues;
	struct backoff backoff; /* across cycles */
};

struct qret_ctx;

void runner_free(struct runner *runner);

/* Forgets the cycle before. */
void runner_reset(struct qret_ctx *ctx);

/* Starts on the items of one phase. */
void runner_begin(struct qret_ctx *ctx, const struct phase *phase, struct work *works,
                  uint32_t count, bool single);

/* Nothing more is sent; the first reason counts, but an error outweighs the others. */
void runner_halt(struct runner *runner, enum halt why);
void runner_fail(struct runner *runner, const struct error *error);

/* Takes a halt back, to go on with the same items. */
void runner_continue(struct runner *runner);

/*
 * QRET_WAIT, QRET_MORE, or QRET_DONE when nothing is in flight and nothing more will be sent:
 * then halt says why.
 */
int runner_process(struct qret_ctx *ctx);

/*
 * When it wants to look again without an answer: to send at the pace that is set, to end with the
 * budget, to open a lane, to renew. It may have passed since.
 */
int64_t runner_deadline_us(const struct qret_ctx *ctx);

#endif
