/* SPDX-License-Identifier: MIT */
/*
 * Sends and collects in libpq's pipeline mode. A lost reply counts as not done: the caller must
 * not count it.
 */
#include "query.h"

#include <stdio.h>

#include <libpq-fe.h>

#include "clock.h"
#include "qretention.h"

/*
 * libpq says nothing once between two statements; more often in a row only when it has lost its
 * place.
 */
#define SILENCES_MAX 3

/* More results than any group of ours can bring. */
#define RESULTS_MAX 32

/* Preparing is a statement of its own, so it pays only for what is sent more often. */
#define USES_BEFORE_PREPARING 4

static int lost(struct session *session)
{
	return session_lose(session, QRET_ERR_CONNECTION, PQerrorMessage(session->connection));
}

static int flush(struct session *session)
{
	int rc = PQflush(session->connection);

	session->flushing = rc == 1;
	return rc < 0 ? lost(session) : QRET_DONE;
}

int query_queue(struct session *session, const char *text, const struct parameters *parameters)
{
	static const struct parameters none;
	const struct parameters *p = parameters != NULL ? parameters : &none;

	if (PQsendQueryParams(session->connection, text, p->count, p->types, p->values, p->lengths,
	                      p->formats, 1) != 1)
		return lost(session);
	session->queued++;
	return QRET_DONE;
}

/* The text's entry; NULL where it is not to be prepared, or not yet. */
static struct prepared *often_used(struct session *session, const char *text)
{
	struct prepared *entry = session->prepared;

	if (session->borrowed || session->settings.wrapped)
		return NULL;
	while (entry < session->prepared + session->prepared_count && entry->text != text)
		entry++;
	if (entry == session->prepared + session->prepared_count) {
		if (session->prepared_count == SESSION_PREPARED_MAX)
			return NULL;
		session->prepared_count++;
		*entry = (struct prepared){ .text = text };
	}
	return ++entry->uses > USES_BEFORE_PREPARING ? entry : NULL;
}

int query_queue_often(struct session *session, const char *text,
                      const struct parameters *parameters)
{
	struct prepared *entry = often_used(session, text);
	const struct parameters *p = parameters;
	char name[24];

	if (entry == NULL)
		return query_queue(session, text, parameters);
	if (entry->serial == 0 && session->preparing == NULL) {
		entry->serial = ++session->prepared_serial;
		session->preparing = entry;
		session->preparing_at = session->queued;
		snprintf(name, sizeof(name), "qret_%u", entry->serial);
		if (PQsendPrepare(session->connection, name, text, p->count, p->types) != 1)
			return lost(session);
		session->queued++;
	}
	if (entry->serial == 0)
		return query_queue(session, text, parameters);
	snprintf(name, sizeof(name), "qret_%u", entry->serial);
	if (PQsendQueryPrepared(session->connection, name, p->count, p->values, p->lengths,
	                        p->formats, 1) != 1)
		return lost(session);
	session->queued++;
	return QRET_DONE;
}

uint8_t query_last(const struct session *session)
{
	return session->queued - 1;
}

int query_sync(struct session *session)
{
	return PQpipelineSync(session->connection) == 1 ? QRET_DONE : lost(session);
}

int query_group(struct session *session, uint8_t answer_at, uint8_t syncs, void *owner)
{
	struct request *request =
		&session->requests[(session->first + session->count) % SESSION_REQUESTS_MAX];

	request->owner = owner;
	request->answer_at = answer_at;
	request->syncs = syncs;
	request->trip = session->trip;
	request->prepared = session->preparing;
	request->prepared_at = session->preparing_at;
	session->preparing = NULL;
	session->queued = 0;
	if (session->count++ == 0)
		session->progress_us = qret_now_us();
	return flush(session);
}

int query_send_plain(struct session *session, const char *text, const struct parameters *parameters,
                     void *owner)
{
	int rc = query_queue(session, text, parameters);

	if (rc == QRET_DONE)
		rc = query_sync(session);
	if (rc == QRET_DONE)
		rc = query_group(session, query_last(session), 1, owner);
	return rc;
}

bool query_has_room(const struct session *session)
{
	return session->state == SESSION_READY && session->count < SESSION_REQUESTS_MAX;
}

/* Keeps the first failure of a group: what follows it is only its echo. */
static void record_failure(struct session *session, const PGresult *result)
{
	const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
	const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);

	if (session->failure.code != QRET_DONE)
		return;
	error_set_server(&session->failure, sqlstate != NULL ? sqlstate : "",
	                 message != NULL ? message : PQresultErrorMessage(result),
	                 PQresultErrorField(result, PG_DIAG_MESSAGE_HINT));
}

/* Takes one result of the group at the head. */
static void take_result(struct session *session, const struct request *request, PGresult *result)
{
	switch (PQresultStatus(result)) {
	case PGRES_PIPELINE_SYNC:
		session->syncs_seen++;
		break;
	case PGRES_TUPLES_OK:
	case PGRES_COMMAND_OK:
		/* Prepared is prepared, whatever becomes of the rest of the group. */
		if (session->results_seen == request->prepared_at)
			session->requests[session->first].prepared = NULL;
		if (session->results_seen++ == request->answer_at) {
			session->answer = result;
			return;
		}
		break;
	case PGRES_PIPELINE_ABORTED:
		session->results_seen++;
		break;
	default:
		session->results_seen++;
		record_failure(session, result);
	}
	PQclear(result);
}

/* The group at the head is whole: hands it over and turns to the next. */
static int finish_group(struct session *session, struct pg_result **ret_result, void **ret_owner,
                        struct error *error)
{
	struct request *request = &session->requests[session->first];
	int rc = session->failure.code;

	if (rc == QRET_DONE && session->answer == NULL)
		rc = error_set(&session->failure, QRET_ERR_SQL, true, NULL,
		               "the server did not answer a statement");
	*ret_owner = request->owner;
	/* What a failed group did not get to prepare gets another name next time. */
	if (rc != QRET_DONE && request->prepared != NULL)
		request->prepared->serial = 0;
	if (rc == QRET_DONE) {
		*ret_result = session->answer;
		session->answer = NULL;
	} else {
		*error = session->failure;
	}
	if (request->trip == session->trip) {
		session->trip++;
		session->round_trips++;
	}
	PQclear(session->answer);
	session->answer = NULL;
	error_clear(&session->failure);
	session->results_seen = session->syncs_seen = 0;
	session->first = (session->first + 1) % SESSION_REQUESTS_MAX;
	session->count--;
	session->progress_us = qret_now_us();
	return rc;
}

/*
 * A pooler that answers one statement twice leaves libpq with nothing to say for ever: give such
 * a connection up.
 */
static int out_of_step(struct session *session)
{
	return session_lose(session, QRET_ERR_CONNECTION,
	                    "the answers of the server are out of step with the statements");
}

/* QRET_DONE if libpq has something to hand out, QRET_WAIT, or the connection is lost. */
static int readable(struct session *session)
{
	if (session->flushing && flush(session) != QRET_DONE)
		return session->lost.code;
	if (!PQisBusy(session->connection))
		return QRET_DONE;
	if (PQconsumeInput(session->connection) != 1)
		return lost(session);
	if (!PQisBusy(session->connection))
		return QRET_DONE;
	if (qret_now_us() >= session_deadline_us(session))
		return session_lose(session, QRET_ERR_TIMEOUT,
		                    "the server did not answer within statement_timeout_ms");
	return QRET_WAIT;
}

int query_collect(struct session *session, struct pg_result **ret_result, void **ret_owner,
                  struct error *error)
{
	int rc, silent = 0;

	*ret_owner = NULL;
	while (session->state != SESSION_LOST && session->count > 0) {
		const struct request *request = &session->requests[session->first];
		PGresult *result;

		rc = readable(session);
		if (rc == QRET_WAIT)
			return QRET_WAIT;
		if (rc != QRET_DONE)
			break;
		result = PQgetResult(session->connection);
		silent = result == NULL ? silent + 1 : 0;
		if (result != NULL)
			take_result(session, request, result);
		/* NULL only separates statements, unless nothing will ever follow it. */
		if (PQstatus(session->connection) != CONNECTION_OK) {
			lost(session);
			break;
		}
		if (silent > SILENCES_MAX || session->results_seen > RESULTS_MAX) {
			out_of_step(session);
			break;
		}
		if (session->syncs_seen == request->syncs)
			return finish_group(session, ret_result, ret_owner, error);
	}
	*error = session->lost;
	return session->lost.code;
}
