/* SPDX-License-Identifier: MIT */
/*
 * A non-blocking libpq connection that carries one statement at a time. It opens itself again when
 * lost; whoever sent the statement that was under way is told, and decides about it.
 */
#include "broker.h"

#include <string.h>

#define RETRY_US 250000

static void client_close(struct client *client)
{
	PQfinish(client->connection);
	PQclear(client->result);
	client->connection = NULL;
	client->result = NULL;
	client->state = CLIENT_CLOSED;
	client->retry_us = qret_now_us() + RETRY_US;
}

static void client_lost(struct client *client)
{
	int was_serving = client->state == CLIENT_SENDING || client->state == CLIENT_WAITING;

	client_close(client);
	if (was_serving)
		client->answer(client->owner, NULL);
}

static void ignore_notice(void *data, const PGresult *result)
{
	(void)data;
	(void)result;
}

static void client_open(struct client *client)
{
	const char *names[] = { "fallback_application_name", "dbname", NULL };
	const char *values[] = { "broker", client->dsn, NULL };

	if (client->dsn == NULL)
		names[1] = NULL;
	client->connection = PQconnectStartParams(names, values, 1);
	if (client->connection == NULL || PQstatus(client->connection) == CONNECTION_BAD) {
		client_close(client);
		return;
	}
	PQsetNoticeReceiver(client->connection, ignore_notice, NULL);
	client->state = CLIENT_CONNECTING;
	client->events = POLLOUT;
}

void client_begin(struct client *client, const char *dsn, client_answer_fn answer, void *owner)
{
	*client = (struct client){ .dsn = dsn, .answer = answer, .owner = owner };
	client_open(client);
}

void client_end(struct client *client)
{
	client_close(client);
}

int client_is_idle(const struct client *client)
{
	return client->state == CLIENT_IDLE;
}

static void move_connecting(struct client *client)
{
	switch (PQconnectPoll(client->connection)) {
	case PGRES_POLLING_READING:
		client->events = POLLIN;
		break;
	case PGRES_POLLING_WRITING:
		client->events = POLLOUT;
		break;
	case PGRES_POLLING_OK:
		PQsetnonblocking(client->connection, 1);
		client->state = CLIENT_IDLE;
		client->events = POLLIN;
		break;
	default:
		client_close(client);
	}
}

static void move_sending(struct client *client)
{
	int left = PQflush(client->connection);

	if (left < 0)
		client_lost(client);
	else if (left == 0)
		client->state = CLIENT_WAITING;
	if (client->connection)
		client->events = left > 0 ? POLLIN | POLLOUT : POLLIN;
}

/* Takes results until the statement is complete or more input is needed. */
static void collect(struct client *client)
{
	while (!PQisBusy(client->connection)) {
		PGresult *result = PQgetResult(client->connection);

		if (result == NULL) {
			PGresult *complete = client->result;

			client->result = NULL;
			client->state = CLIENT_IDLE;
			client->answer(client->owner, complete);
			PQclear(complete);
			return;
		}
		PQclear(client->result);
		client->result = result;
		if (PQstatus(client->connection) == CONNECTION_BAD) {
			client_lost(client);
			return;
		}
	}
}

void client_move(struct client *client, short revents)
{
	if (client->state == CLIENT_CLOSED) {
		if (qret_now_us() >= client->retry_us)
			client_open(client);
		return;
	}
	if (revents == 0)
		return;
	if (client->state == CLIENT_CONNECTING) {
		move_connecting(client);
		return;
	}
	if (PQconsumeInput(client->connection) == 0) {
		client_lost(client);
		return;
	}
	if (client->state == CLIENT_SENDING)
		move_sending(client);
	if (client->state == CLIENT_WAITING)
		collect(client);
}

int client_send(struct client *client, const char *sql, const struct client_value *values,
                int value_count)
{
	const char *data[CLIENT_VALUES_MOST];
	int lengths[CLIENT_VALUES_MOST], formats[CLIENT_VALUES_MOST];

	for (int i = 0; i < value_count; i++) {
		data[i] = values[i].data;
		lengths[i] = values[i].binary_length;
		formats[i] = values[i].binary_length > 0;
	}
	if (!PQsendQueryParams(client->connection, sql, value_count, NULL, data, lengths, formats,
	                       0)) {
		client_lost(client);
		return -1;
	}
	client->state = CLIENT_SENDING;
	move_sending(client);
	return client->state == CLIENT_CLOSED ? -1 : 0;
}

int64_t client_wants(const struct client *client, struct pollfd *ret_slot)
{
	*ret_slot = (struct pollfd){ .fd = -1 };
	if (client->state == CLIENT_CLOSED)
		return client->retry_us;
	ret_slot->fd = PQsocket(client->connection);
	ret_slot->events = client->events;
	return INT64_MAX;
}
