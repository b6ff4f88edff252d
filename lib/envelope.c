/* SPDX-License-Identifier: MIT */
/*
 * Builds envelopes. A group of statements up to a sync point is one transaction, so a fence
 * needs no BEGIN of its own. A wrapped group has its sync before the COMMIT: whatever failed,
 * the COMMIT still arrives and ends the transaction, so the session never stays in an aborted
 * one.
 */
#include "envelope.h"

#include "qretention.h"
#include "query.h"
#include "settings.h"

static int queue_settings(struct session *session)
{
	struct parameters parameters = { 0 };
	int rc = query_queue(session, "BEGIN ISOLATION LEVEL READ COMMITTED", NULL);

	settings_parameters(&parameters, &session->settings, true);
	/* A host's own limit may be too short for any statement that is planned. */
	if (rc == QRET_DONE)
		rc = query_queue(session, "SET LOCAL statement_timeout = 0", NULL);
	return rc != QRET_DONE ? rc : query_queue(session, session->settings_text, &parameters);
}

static int queue_fence(struct session *session, const struct envelope *envelope)
{
	struct parameters parameters = { 0 };

	parameter_int8(&parameters, envelope->fence);
	parameter_int8(&parameters, envelope->key);
	return query_queue_often(session, envelope->fence_text, &parameters);
}

static int queue_commit(struct session *session)
{
	int rc = query_sync(session);

	return rc != QRET_DONE ? rc : query_queue(session, "COMMIT", NULL);
}

int envelope_send(struct session *session, const struct envelope *envelope, const char *text,
                  const struct parameters *parameters, void *owner)
{
	bool wrapped = session->settings.wrapped;
	bool often = envelope != NULL && envelope->often;
	uint8_t answer_at;
	bool fenced = envelope != NULL && envelope->fenced;
	int rc = wrapped ? queue_settings(session) : QRET_DONE;

	if (rc == QRET_DONE && fenced)
		rc = queue_fence(session, envelope);
	if (rc == QRET_DONE)
		rc = often ? query_queue_often(session, text, parameters)
		           : query_queue(session, text, parameters);
	answer_at = query_last(session);
	if (rc == QRET_DONE && wrapped)
		rc = queue_commit(session);
	if (rc == QRET_DONE)
		rc = query_sync(session);
	if (rc == QRET_DONE)
		rc = query_group(session, answer_at, wrapped ? 2 : 1, owner);
	return rc;
}
