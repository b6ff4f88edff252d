/* SPDX-License-Identifier: MIT */
/*
 * Discovery by floors: the list of due partitions, and what keeps the floors true. Binds, reads and
 * remembers; the statements are sent by the states that states_floors.c holds.
 */
#ifndef QRET_LIB_FLOORS_H
#define QRET_LIB_FLOORS_H

#include <stdbool.h>
#include <stdint.h>

#include "value.h"
#include "worklist.h"

#define FLOORS_HINTS  5
#define EXCLUDED_MOST PAGE_ITEMS

/* The statements that keep floors true, each of which takes a number of partitions. */
enum floors_kind { FLOORS_SETTLE, FLOORS_PINNED, FLOORS_WALK, FLOORS_KINDS };

struct qret_ctx;

/* A round over many rows, a share of it each cycle. */
struct round {
	bool has_after;
	uint8_t after[16]; /* where its next page goes on */
	bool midway;       /* it began somewhere in the middle, so its end is not the whole */
	bool counted;      /* total is known, not guessed */
	int64_t looked;    /* in this round */
	int64_t total;     /* of a whole round, as far as is known */
	int64_t last_us;   /* when the last share was taken, on our clock */
	int64_t quota;     /* left of this cycle's share */
};

struct ids {
	uint8_t (*list)[16];
	uint32_t count, capacity;
};

struct floors {
	bool has_after;
	uint8_t after[16]; /* the queue the next page begins after: in rotation, across cycles */
	struct blob hints[FLOORS_HINTS];
	uint32_t looks;       /* since one that began without hints */
	struct ids excluded;  /* left out of this cycle's list */
	struct ids unsettled; /* to be brought up to date */
	uint32_t
		progress; /* what the last page and its settling changed; a list without any is over */
	uint32_t settling;           /* how many of them are on their way */
	uint32_t failures;           /* attempts to settle that failed, in a row */
	int32_t sizes[FLOORS_KINDS]; /* most partitions of one statement, from what time allowed */
	int32_t asked;               /* of the last one */
	struct round pinned, walk;
	int64_t pinned_count;
	uint8_t *array; /* room for PAGE_ITEMS ids as an array on the wire */
};

int floors_init(struct floors *floors);
void floors_free(struct floors *floors);

/* A cycle begins: what was left out of the last one is back. */
void floors_begin(struct floors *floors);

/* Other options: what earlier looks and rounds told is of another log. */
void floors_forget(struct floors *floors);

/* A new session, perhaps on another server: the next look begins from the start. */
void floors_forget_hints(struct floors *floors);

/* The rest of the due list's parameters and columns, after the clock and the items. */
const char *floors_due_bind(struct qret_ctx *ctx, struct parameters *parameters);
void floors_due_read(struct qret_ctx *ctx, const struct pg_result *result);

/*
 * Sorts a page that has been stepped: what failed or had nothing is left out from now on, what had
 * nothing is unsettled as well. False where the list is over, since nothing moves any more.
 */
bool floors_page_over(struct qret_ctx *ctx);

/*
 * Sorts a page that went into a host's list: that is left out from now on, what is unknown is
 * unsettled.
 */
void floors_page_listed(struct qret_ctx *ctx);
void floors_unsettle(struct floors *floors, const uint8_t *id);

/* Bringing unsettled partitions up to date, some hundred at a time. */
const char *floors_settle_bind(struct qret_ctx *ctx, struct parameters *parameters);
void floors_settle_read(struct qret_ctx *ctx, const struct pg_result *result);
void floors_settle_failed(struct floors *floors);

/* A row of floors_refresh.sql, whose columns the walk has too. */
void floors_refreshed_read(struct qret_ctx *ctx, const struct pg_result *result, int row);

/*
 * A statement of this kind took too long: the next takes half as many. False where it had but one.
 */
bool floors_shrink(struct floors *floors, enum floors_kind kind);

/*
 * A cycle gave a round up: the next goes on anywhere else, so that what cannot be looked at does not
 * stand before all that lies behind it.
 */
void floors_round_failed(struct round *round);

/* What the rounds know is of another log. */
void floors_rounds_forget(struct floors *floors);

/* Shares of the two rounds. Reading tells whether this cycle's share is done. */
void floors_share_begin(struct floors *floors);
const char *floors_pinned_bind(struct qret_ctx *ctx, struct parameters *parameters);
bool floors_pinned_read(struct qret_ctx *ctx, const struct pg_result *result);
const char *floors_walk_bind(struct qret_ctx *ctx, struct parameters *parameters);
bool floors_walk_read(struct qret_ctx *ctx, const struct pg_result *result);

#endif
