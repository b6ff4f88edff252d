/* SPDX-License-Identifier: MIT */
/*
 * The life of one connection. Every connection works in libpq's pipeline mode with a sync after
 * each group of statements, so that the same code serves one group in flight or many.
 */
#include "session.h"

#include <string.h>

#include <libpq-fe.h>

#include "clock.h"
#include "qretention.h"
#include "query.h"
#include "settings.h"

/*
 * The server ends a statement that is out of time; only if it cannot even do that is it given
 * up.
 */
#define GRACE_MS 1000

static void on_notice(void *data, const PGresult *result)
{
	struct session *session = data;
	const char *text = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
	struct line line;

	if (session->log == NULL || !log_wants(session->log, LOG_NOTICE))
		return;
	log_begin(&line, LOG_NOTICE);
	line_text(&line, "severity",
	          PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED) != NULL
	                  ? PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED)
	                  : "");
	line_text(&line, "message", text != NULL ? text : PQresultErrorMessage(result));
	log_end(session->log, LOG_NOTICE, &line);
}

static void forget_prepared(struct session *session)
{
	session->prepared_count = 0;
}

static void reset_requests(struct session *session)
{
	session->queued = 0;
	session->preparing = NULL;
	PQclear(session->answer);
	session->answer = NULL;
	session->first = session->count = 0;
	session->results_seen = session->syncs_seen = 0;
	session->flushing = false;
	error_clear(&session->failure);
}

void session_open(struct session *session, const struct target *target,
                  struct connect_limits limits)
{
	reset_requests(session);
	session->state = SESSION_CONNECTING;
	connect_begin(&session->connect, target, limits);
	session->connect.notice = on_notice;
	session->connect.notice_data = session;
	if (session->connect.connection != NULL)
		PQsetNoticeReceiver(session->connect.connection, on_notice, session);
	forget_prepared(session);
}

/* Pipeline mode and non-blocking writes, which a fresh or resting connection takes at once. */
static int enter_pipeline(struct session *session, struct error *error)
{
	if (PQsetnonblocking(session->connection, 1) != 0 ||
	    PQenterPipelineMode(session->connection) != 1)
		return error_set(error, QRET_ERR_STATE, false,
		                 "the connection must be idle, with no result left to read",
		                 "the connection is in use");
	return QRET_DONE;
}

bool session_can_adopt(const struct pg_conn *connection)
{
	return PQstatus(connection) == CONNECTION_OK &&
	       PQtransactionStatus(connection) == PQTRANS_IDLE &&
	       PQpipelineStatus(connection) == PQ_PIPELINE_OFF;
}

bool session_idled_out(const struct session *session)
{
	int64_t since_us = session->idle_since_us > session->progress_us ? session->idle_since_us
	                                                                 : session->progress_us;

	/* The server ends a session that was idle for the limit: do not race with it. */
	return session->count == 0 && session->settings.idle_limit_ms > 0 &&
	       qret_now_us() - since_us > session->settings.idle_limit_ms * US_PER_MS * 3 / 4;
}

bool session_alive(struct session *session, bool kept)
{
	if (!kept && session_idled_out(session))
		return false;
	/*
	 * What arrived meanwhile is a notice, or the server's farewell; the end of the stream
	 * shows at the second look.
	 */
	return PQconsumeInput(session->connection) == 1 &&
	       PQconsumeInput(session->connection) == 1 &&
	       PQstatus(session->connection) == CONNECTION_OK;
}

int session_adopt(struct session *session, struct error *error)
{
	int rc;

	reset_requests(session);
	if (session->tainted)
		return error_set(error, QRET_ERR_CONNECTION, false, "detach it and attach another",
		                 "the borrowed connection was lost or left in an unknown state");
	if (PQstatus(session->connection) != CONNECTION_OK) {
		session->tainted = true;
		return error_set(error, QRET_ERR_CONNECTION, false, "detach it and attach another",
		                 "the borrowed connection is lost");
	}
	if (!session_can_adopt(session->connection))
		return error_set(error, QRET_ERR_STATE, false,
		                 "end the transaction before the library is called",
		                 "the borrowed connection is not idle");
	session->blocking_before = !PQisnonblocking(session->connection);
	rc = enter_pipeline(session, error);
	if (rc == QRET_DONE)
		session->state = SESSION_READY;
	return rc;
}

static int send_settings(struct session *session, struct error *error)
{
	struct parameters parameters = { 0 };
	int rc = enter_pipeline(session, error);

	if (rc != QRET_DONE)
		return rc;
	PQsetNoticeReceiver(session->connection, on_notice, session);
	settings_parameters(&parameters, &session->settings, false);
	session->state = SESSION_SETTING_UP;
	/*
	 * First and by itself: a role's own limit may be too short for any statement that is
	 * planned.
	 */
	rc = query_queue(session, "SET statement_timeout = 0", NULL);
	if (rc == QRET_DONE)
		rc = query_send_plain(session, session->settings_text, &parameters, session);
	if (rc != QRET_DONE)
		*error = session->lost;
	return rc;
}

static int collect_settings(struct session *session, struct error *error)
{
	struct pg_result *answer = NULL;
	void *owner;
	int rc = query_collect(session, &answer, &owner, error);

	result_free(answer);
	if (rc == QRET_DONE)
		session->state = SESSION_READY;
	return rc;
}

int session_process(struct session *session, struct error *error)
{
	int rc = QRET_DONE;

	if (session->state == SESSION_CONNECTING) {
		rc = connect_process(&session->connect, &session->connection, error);
		if (rc == QRET_DONE)
			rc = session->settings.wrapped ? enter_pipeline(session, error)
			                               : send_settings(session, error);
		if (rc == QRET_DONE && session->settings.wrapped)
			session->state = SESSION_READY;
	}
	if (rc == QRET_DONE && session->state == SESSION_SETTING_UP)
		rc = collect_settings(session, error);
	if (rc < 0)
		session_abandon(session);
	session->idle_since_us = qret_now_us();
	return rc;
}

void session_rest(struct session *session)
{
	session->idle_since_us = qret_now_us();
	if (!session->borrowed || session->state != SESSION_READY)
		return;
	session->state = SESSION_CLOSED;
	if (session->count > 0 || PQexitPipelineMode(session->connection) != 1 ||
	    (session->blocking_before && PQsetnonblocking(session->connection, 0) != 0))
		session->tainted = true;
	reset_requests(session);
}

void session_abandon(struct session *session)
{
	connect_abandon(&session->connect);
	reset_requests(session);
	session->state = SESSION_CLOSED;
	if (session->borrowed) {
		session->tainted = true;
		return;
	}
	if (session->connection != NULL)
		PQfinish(session->connection);
	session->connection = NULL;
}

void session_forget(struct session *session)
{
	PQclear(session->answer);
	session->answer = NULL;
	session->connection = NULL;
	session->connect.connection = NULL;
	session->state = SESSION_CLOSED;
}

int session_lose(struct session *session, int code, const char *message)
{
	/* The server's last word, if it had one, says more than "closed unexpectedly". */
	if (session->failure.sqlstate[0] != '\0')
		session->lost = session->failure;
	else
		error_set(&session->lost, code, true, NULL, "%.*s", (int)strcspn(message, "\n"),
		          message);
	session->lost.code = code;
	session->lost.retryable = !session->borrowed;
	session_abandon(session);
	session->state = SESSION_LOST;
	return code;
}

int session_fd(const struct session *session)
{
	if (session->state == SESSION_CONNECTING)
		return session->connect.connection == NULL ? -1
		                                           : PQsocket(session->connect.connection);
	if ((session->state == SESSION_READY || session->state == SESSION_SETTING_UP) &&
	    session->count > 0)
		return PQsocket(session->connection);
	return -1;
}

int32_t session_events(const struct session *session)
{
	if (session->state == SESSION_CONNECTING)
		return session->connect.events;
	return QRET_POLL_READ | (session->flushing ? QRET_POLL_WRITE : 0);
}

int64_t session_deadline_us(const struct session *session)
{
	if (session->state == SESSION_CONNECTING)
		return session->connect.deadline_us;
	if (session->count == 0 || session->settings.statement_timeout_ms == 0)
		return NO_DEADLINE;
	return clock_after_ms(session->progress_us,
	                      session->settings.statement_timeout_ms + GRACE_MS);
}
