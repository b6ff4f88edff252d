/* SPDX-License-Identifier: MIT */
/*
 * Statements on a session: sent in groups, each its own transaction, answers collected in order.
 * A group is one plain statement, or the envelope that envelope.h builds. Never blocks.
 */
#ifndef QRET_LIB_QUERY_H
#define QRET_LIB_QUERY_H

#include <stdbool.h>

#include "error.h"
#include "session.h"
#include "value.h"

/*
 * One statement that commits by itself. `owner` comes back with the answer. Failure means the
 * session is lost.
 */
int query_send_plain(struct session *session, const char *text, const struct parameters *parameters,
                     void *owner);

/* For envelopes: statements are queued one by one, then the group is closed and sent. */
int query_queue(struct session *session, const char *text, const struct parameters *parameters);

/*
 * The same for a statement that is sent often: on an owned session the server comes to keep its
 * plan. The text stays where it is.
 */
int query_queue_often(struct session *session, const char *text,
                      const struct parameters *parameters);

/* Which result of the group will be that of the statement queued last. */
uint8_t query_last(const struct session *session);
int query_sync(struct session *session);
int query_group(struct session *session, uint8_t answer_at, uint8_t syncs, void *owner);

/* Whether another group may be sent. */
bool query_has_room(const struct session *session);

/*
 * The next answer, in the order of sending. QRET_DONE with a result that the caller frees;
 * QRET_WAIT; or the code of a failure, told in `error`: the group's own (the session stays
 * READY) or the connection's (the session is LOST and no more answers come). *ret_owner is set
 * on all but QRET_WAIT, NULL if the connection was lost.
 */
int query_collect(struct session *session, struct pg_result **ret_result, void **ret_owner,
                  struct error *error);

#endif
