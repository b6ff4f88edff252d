/* SPDX-License-Identifier: MIT */
/*
 * What surrounds a statement of ours on the wire: nothing, where it commits by itself on a
 * session of our own; BEGIN, settings, statement, COMMIT where the session is not ours to set;
 * and the fence before it where a lease must still be held. Always sent as one, never a
 * transaction left open.
 */
#ifndef QRET_LIB_ENVELOPE_H
#define QRET_LIB_ENVELOPE_H

#include <stdbool.h>
#include <stdint.h>

#include "session.h"
#include "value.h"

struct envelope {
	bool often; /* the text stays where it is and is sent again and again */
	bool fenced;
	int64_t fence;          /* the number that must still be in force */
	int64_t key;            /* the advisory lock that orders steps and claims */
	const char *fence_text; /* the statement that checks it */
};

/* Sends one statement in its envelope. `envelope` may be NULL: once, and no fence. */
int envelope_send(struct session *session, const struct envelope *envelope, const char *text,
                  const struct parameters *parameters, void *owner);

#endif
