/* SPDX-License-Identifier: MIT */
/* An outbox behind the scripted libpq, that remembers what its prune is asked. */
#ifndef QRET_TESTS_SCRIPT_OUTBOX_H
#define QRET_TESTS_SCRIPT_OUTBOX_H

#include "script_world.h"

extern char outbox_arms[4096];    /* the parameters of each step, and a bar after each */
extern const char *outbox_answer; /* what the next steps are answered */
extern int outbox_answers;        /* how many of them; the others have nothing to prune */

/* A world with an outbox alone, which has nothing to prune. */
void outbox_begin(void);

/* From now on beside a busy host, which the prune is late for after eleven minutes. */
void outbox_busy(void);

/* world.before of such a world. */
const char *outbox_step(struct script_call *call);

#endif
