/* SPDX-License-Identifier: MIT */
/*
 * Opening a connection of our own without blocking, one host of the conninfo at a time so that the
 * connect limit holds for each. Knows nothing of what the connection is for.
 */
#ifndef QRET_LIB_CONNECT_H
#define QRET_LIB_CONNECT_H

#include <stdint.h>

#include "error.h"
#include "target.h"

struct pg_conn;
struct pg_result;

struct connect_limits {
	int64_t connect_timeout_ms;
	int64_t idle_limit_ms;
};

/* One attempt at all hosts in turn. */
struct connect {
	const struct target *target;
	struct connect_limits limits;
	struct pg_conn *connection; /* of the host being tried */
	uint32_t attempt;
	int32_t events; /* QRET_POLL_* that it waits for */
	int64_t deadline_us;
	struct error last; /* why the host before was given up */
	void (*notice)(void *data,
	               const struct pg_result *result); /* of the hosts after the first */
	void *notice_data;
};

void connect_begin(struct connect *connect, const struct target *target,
                   struct connect_limits limits);

/* QRET_DONE with the connection handed over, QRET_WAIT, or the error of the last host. */
int connect_process(struct connect *connect, struct pg_conn **ret_connection, struct error *error);

void connect_abandon(struct connect *connect);

#endif
