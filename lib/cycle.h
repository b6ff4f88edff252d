/* SPDX-License-Identifier: MIT */
/*
 * The state machine behind every call that reaches the server: a full cycle, and the shorter plans
 * that share its states (one step, a work list, taking or releasing the gate, opening a session).
 */
#ifndef QRET_LIB_CYCLE_H
#define QRET_LIB_CYCLE_H

#include <stdbool.h>
#include <stdint.h>

#include "error.h"
#include "overdue.h"
#include "work.h"

struct qret_ctx;
struct qret_worklist;
struct session;

#define UNITS_MOST 5

enum plan { PLAN_CYCLE, PLAN_STEP, PLAN_WORKLIST, PLAN_TAKE, PLAN_RELEASE, PLAN_OPEN };

enum cycle_state {
	STATE_REST,    /* no cycle in progress */
	STATE_OPEN,    /* a session is opened, or the borrowed one put to work */
	STATE_FACTS,   /* what the server is and what is installed */
	STATE_VERSION, /* of the installed parts */
	STATE_GATE,    /* taking it */
	STATE_PINNED,  /* due by floors: which pinned partitions may be free again */
	STATE_PAGE,    /* reading the next page of the work list */
	STATE_REFRESH, /* reading an old page again */
	STATE_RUN,     /* steps of one phase */
	STATE_SETTLE,  /* due by floors: bringing floors up to date */
	STATE_WALK,    /* due by floors: a page of the slow walk over all partitions */
	STATE_OVERDUE, /* how long overdue is what was left */
	STATE_RELEASE, /* giving the gate back */
	STATE_END
};

struct cycle {
	enum plan plan;
	enum cycle_state state;
	bool asked; /* the state's statement is on its way */
	bool eager; /* it has not begun, or said QRET_MORE: there is nothing to wait for */
	int64_t started_us;
	int64_t clock_us; /* the server's; QRET_CUTOFF_OFF before it is known */
	int32_t phase;    /* id of the phase that runs, or ran last */
	const char *part; /* whose version is asked */
	int32_t version;  /* as installed */

	/* what the end will be made of */
	int outcome;        /* QRET_BUSY, QRET_STANDBY: decided early; else QRET_DONE */
	struct error error; /* why it fails; code QRET_DONE: it does not */
	struct error first_failure;
	bool stopped, budget, partial;
	bool pages_over; /* phases 1 to 3 have had their last page */
	bool prune_open; /* the gate is held, and the event prune has not had its turn */
	bool late_prune; /* it has it at the end of a cycle that ended early: one step */
	enum cycle_state after_settle;

	struct work units[UNITS_MOST]; /* a phase's own; the one item of a step by hand */
	struct left left;              /* partitions that still have work */
	struct qret_worklist *list;    /* PLAN_WORKLIST */
};

/* Starts a plan; no I/O. */
void cycle_start(struct qret_ctx *ctx, enum plan plan);

/* Moves on: QRET_MORE, QRET_WAIT, or the final outcome, after which the context is at rest. */
int cycle_advance(struct qret_ctx *ctx);

/* Runs a started plan to its end, blocking. */
int cycle_run(struct qret_ctx *ctx);

/* Drops a plan in mid-way: what is in flight is abandoned. */
void cycle_drop(struct qret_ctx *ctx);

/* Begins to open an owned session under the current options. */
void cycle_open_session(struct qret_ctx *ctx, struct session *session);

bool cycle_in_progress(const struct qret_ctx *ctx);

/* Whether the running cycle has used up its time. */
bool cycle_budget_spent(const struct qret_ctx *ctx);

#endif
