/* SPDX-License-Identifier: MIT */
/* The life of a script: its connections, the knobs, and what must be true at its end. */
#include <inttypes.h>
#include <stdio.h>

#include "script_libpq.h"

struct script_knobs script_knobs;

static struct pg_conn *connections[CONNECTIONS_MOST];
static int connection_count;
static const char *const *behaviours;
static size_t behaviour_count;
static long calls;
static bool died;

void script_free_outgoing(struct outgoing *outgoing)
{
	__real_free(outgoing->text);
	__real_free(outgoing->parameters);
	__real_free(outgoing);
}

void script_free_queue(struct pg_conn *conn)
{
	while (conn->named_count > 0)
		__real_free(conn->named[--conn->named_count].text);
	while (conn->said != NULL) {
		struct utterance *next = conn->said->next;

		if (conn->said->result != NULL)
			conn->said->result->cleared = true;
		__real_free(conn->said);
		conn->said = next;
	}
	conn->said_end = &conn->said;
	while (conn->unsent != NULL) {
		struct outgoing *next = conn->unsent->next;

		script_free_outgoing(conn->unsent);
		conn->unsent = next;
	}
	conn->unsent_end = &conn->unsent;
}

static void forget(void)
{
	for (int i = 0; i < connection_count; i++) {
		script_free_queue(connections[i]);
		__real_free(connections[i]);
	}
	connection_count = 0;
	script_free_results();
}

void script_begin(void)
{
	forget();
	memset(&script_knobs, 0, sizeof(script_knobs));
	behaviours = NULL;
	behaviour_count = 0;
	calls = 0;
	died = false;
	script_clock_reset();
	script_server_reset();
}

void script_end(void)
{
	for (int i = 0; i < connection_count; i++)
		REQUIRE(connections[i]->finished || connections[i]->host_owned,
		        "connection %d was not finished", i + 1);
	for (int i = 0; i < connection_count; i++)
		script_free_queue(connections[i]);
	script_check_results();
	script_server_check();
	forget();
}

void script_connects(const char *const *list, size_t count)
{
	behaviours = list;
	behaviour_count = count;
}

long script_calls(void)
{
	return calls;
}

bool script_died(void)
{
	return died;
}

int script_opened(void)
{
	return connection_count;
}

int script_open(void)
{
	int open = 0;

	for (int i = 0; i < connection_count; i++)
		open += !connections[i]->finished && !connections[i]->host_owned;
	return open;
}

const char *script_keyword(int connection, const char *keyword)
{
	struct pg_conn *conn = connections[connection - 1];

	for (int i = 0; i < conn->keyword_count; i++) {
		if (strcmp(conn->keywords[i][0], keyword) == 0)
			return conn->keywords[i][1];
	}
	return "";
}

void script_die(struct pg_conn *conn)
{
	conn->dead = true;
	for (struct utterance **at = &conn->said; *at != NULL;) {
		struct utterance *lost = *at;

		if (lost->arrived) {
			at = &lost->next;
			continue;
		}
		*at = lost->next;
		if (lost->result != NULL)
			lost->result->cleared = true;
		__real_free(lost);
	}
	for (conn->said_end = &conn->said; *conn->said_end != NULL;)
		conn->said_end = &(*conn->said_end)->next;
}

bool script_notice_death(struct pg_conn *conn)
{
	if (conn->dead && !conn->noticed) {
		conn->noticed = true;
		snprintf(conn->message, sizeof(conn->message),
		         "server closed the connection unexpectedly\n");
	}
	return conn->dead;
}

/* Every call on a connection passes here. */
void script_enter(const PGconn *used)
{
	struct pg_conn *conn = (struct pg_conn *)(uintptr_t)used;

	REQUIRE(conn != NULL && !conn->finished,
	        "libpq was called on a connection that is NULL or finished");
	script_tick();
	calls++;
	if (script_knobs.die_at > 0 &&
	    (script_knobs.die_connection == 0 || script_knobs.die_connection == conn->number) &&
	    --script_knobs.die_at == 0) {
		died = true;
		script_die(conn);
	}
	if (script_knobs.stop_at > 0 && --script_knobs.stop_at == 0) {
		died = true;
		script_knobs.stop();
	}
}

/* For calls that can fail by themselves. */
bool script_refused(struct pg_conn *conn)
{
	if (script_knobs.refuse_at == 0 || --script_knobs.refuse_at > 0)
		return false;
	died = true;
	if (conn != NULL)
		snprintf(conn->message, sizeof(conn->message), "out of memory\n");
	return true;
}

struct pg_conn *script_connection_new(void)
{
	struct pg_conn *conn = __real_calloc(1, sizeof(*conn));

	REQUIRE(connection_count < CONNECTIONS_MOST, "too many connections");
	connections[connection_count++] = conn;
	conn->number = connection_count;
	conn->said_end = &conn->said;
	conn->unsent_end = &conn->unsent;
	return conn;
}

struct pg_conn *script_host_connection(void)
{
	struct pg_conn *conn = script_connection_new();

	conn->host_owned = true;
	conn->stage = OPENED;
	return conn;
}

struct pg_conn *script_connection(int number)
{
	return number >= 1 && number <= connection_count ? connections[number - 1] : NULL;
}

const char *script_behaviour(int number)
{
	return (size_t)number <= behaviour_count ? behaviours[number - 1] : NULL;
}
