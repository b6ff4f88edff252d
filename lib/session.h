/* SPDX-License-Identifier: MIT */
/*
 * One libpq connection, owned or borrowed: opened, set up, given back, given up. Statements on it
 * are query.h's business. Never blocks.
 */
#ifndef QRET_LIB_SESSION_H
#define QRET_LIB_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "connect.h"
#include "error.h"
#include "log.h"

#define SESSION_REQUESTS_MAX 64
#define SESSION_PREPARED_MAX 16

enum session_state {
	SESSION_CLOSED,     /* no connection, or a borrowed one that is at rest */
	SESSION_CONNECTING, /* an owned one is being opened */
	SESSION_SETTING_UP, /* its settings are on their way */
	SESSION_READY,      /* takes statements */
	SESSION_LOST        /* gone in mid-use; `lost` says why */
};

/* What every transaction of ours runs under. */
struct session_settings {
	int64_t statement_timeout_ms, lock_timeout_ms, late_lock_ms, idle_limit_ms;
	bool wrapped; /* no session state: settings go into each transaction */
};

/*
 * A statement that is sent again and again, so that in the end the server keeps its plan under a
 * name.
 */
struct prepared {
	const char *text; /* the caller's, compared by address */
	uint32_t uses;
	uint32_t serial; /* of its name, never used twice on one connection; 0: not prepared */
};

/* One group of statements that was sent and whose answer is awaited. */
struct request {
	void *owner;               /* whose answer it is */
	uint8_t answer_at;         /* which result of the group is the answer */
	uint8_t syncs;             /* sync points that end the group */
	uint32_t trip;             /* the round trip it was sent in */
	struct prepared *prepared; /* what it prepares, until that is done */
	uint8_t prepared_at;       /* which result of the group says so */
};

struct session {
	enum session_state state;
	struct pg_conn *connection;
	bool borrowed;
	bool tainted; /* a borrowed one that cannot be given back as found */
	bool blocking_before;
	struct connect connect;
	struct session_settings settings;
	const char *settings_text; /* the statement that applies them; the context's */
	struct log *log;
	struct error lost;
	int64_t idle_since_us;

	/* query.c's */
	struct request requests[SESSION_REQUESTS_MAX];
	uint32_t first, count;
	uint8_t results_seen, syncs_seen;
	struct pg_result *answer;
	struct error failure;       /* of the request being collected */
	int64_t progress_us;        /* when the oldest request began to be the server's turn */
	uint8_t queued;             /* results that the group being built will bring */
	struct prepared *preparing; /* what the group being built prepares; NULL: nothing */
	uint8_t preparing_at;
	struct prepared prepared[SESSION_PREPARED_MAX];
	uint32_t prepared_count, prepared_serial;
	uint32_t trip;
	int64_t round_trips;
	bool flushing; /* output is waiting for the socket */
};

/* Begins to open an owned connection. */
void session_open(struct session *session, const struct target *target,
                  struct connect_limits limits);

/* Whether a connection of the host's is open and idle. */
bool session_can_adopt(const struct pg_conn *connection);

/* Whether it has had nothing to do for nearly as long as the server lets it. */
bool session_idled_out(const struct session *session);

/*
 * Whether an owned session at rest can still be used; `kept`: it holds something, so being idle
 * for long is no reason to give it up.
 */
bool session_alive(struct session *session, bool kept);

/*
 * Puts a borrowed connection to work: pipeline mode, non-blocking. QRET_DONE or an error; no
 * I/O.
 */
int session_adopt(struct session *session, struct error *error);

/* QRET_DONE once READY; QRET_WAIT; or why it cannot be had (the session is then CLOSED). */
int session_process(struct session *session, struct error *error);

/* Ends use: an owned one stays open for the next use, a borrowed one is given back as found. */
void session_rest(struct session *session);

/* Closes an owned connection at once; taints a borrowed one. Sends nothing that could block. */
void session_abandon(struct session *session);

/* In a forked child: forgets the connection without sending anything. */
void session_forget(struct session *session);

/* Records why the connection is gone and abandons it. */
int session_lose(struct session *session, int code, const char *message);

/* What it waits for: -1 if nothing. */
int session_fd(const struct session *session);
int32_t session_events(const struct session *session);
int64_t session_deadline_us(const struct session *session);

#endif
