/* SPDX-License-Identifier: MIT */
/* The slots of a lane: items in its hands, from their first step there to their last. */
#ifndef QRET_LIB_SLOTS_H
#define QRET_LIB_SLOTS_H

#include "runner.h"

/* Nothing more is to be done for its item in this phase. */
void slot_settle(struct slot *slot);

/* One whose item waits to be sent again; NULL if there is none. */
struct slot *slot_waiting(struct lane *lane);

/*
 * The one to send next on this lane: unfinished items first, then new ones; NULL when there is
 * nothing.
 */
struct slot *slot_next(struct qret_ctx *ctx, struct lane *lane);

#endif
