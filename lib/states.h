/* SPDX-License-Identifier: MIT */
/*
 * What the states of the cycle share: sending and collecting one statement, moving on, failing.
 * A state function returns QRET_WAIT, QRET_MORE after it moved on, or, in STATE_END alone, the
 * outcome.
 */
#ifndef QRET_LIB_STATES_H
#define QRET_LIB_STATES_H

#include "context.h"

typedef const char *(*bind_fn)(struct qret_ctx *ctx, struct parameters *parameters);

int state_move(struct qret_ctx *ctx, enum cycle_state state);

/*
 * Where a plan goes when it is over, for better or worse: past the release, which every path
 * takes.
 */
int state_leave(struct qret_ctx *ctx);
int state_fail(struct qret_ctx *ctx, const struct error *error);
int state_stop(struct qret_ctx *ctx);

/*
 * Sends the state's statement the first time, then collects. QRET_DONE with an answer, which the
 * caller frees; anything else is handed to state_no_answer.
 */
int state_ask(struct qret_ctx *ctx, bind_fn bind, struct pg_result **ret_answer,
              struct error *error);
int state_no_answer(struct qret_ctx *ctx, int rc, const struct error *error);

/* Whether this plan calls functions of an engine. */
bool state_runs(const struct qret_ctx *ctx, int engine);

/*
 * The states, by what they are about: states_open.c, states_gate.c, states_work.c,
 * states_floors.c, finish.c.
 */
int state_open(struct qret_ctx *ctx);
int state_facts(struct qret_ctx *ctx);
int state_version(struct qret_ctx *ctx);
int state_gate(struct qret_ctx *ctx);
int state_release(struct qret_ctx *ctx);
int state_page(struct qret_ctx *ctx);
int state_refresh(struct qret_ctx *ctx);
int state_run(struct qret_ctx *ctx);
int state_pinned(struct qret_ctx *ctx);
int state_settle(struct qret_ctx *ctx);
int state_walk(struct qret_ctx *ctx);
int state_overdue(struct qret_ctx *ctx);

/*
 * Where the work of a plan begins, once it is known what the server is and, in a cycle, that the
 * gate is held.
 */
int states_begin_work(struct qret_ctx *ctx);

/* The next phase of the page at hand, the next page, or what follows the last. */
int states_next_phase(struct qret_ctx *ctx);

/*
 * Where a cycle would end before the event prune had its turn: whether it has it now, for one step.
 * Then the state has moved on.
 */
bool states_late_prune(struct qret_ctx *ctx);

/*
 * Floors: whether this plan lives by them; what to do when a page's phases are over; the end of
 * the work.
 */
bool states_by_floors(const struct qret_ctx *ctx);
int states_page_over(struct qret_ctx *ctx);
int states_listed(struct qret_ctx *ctx); /* the page is in a host's list */
int states_work_over(struct qret_ctx *ctx);

#endif
