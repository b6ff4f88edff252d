/* SPDX-License-Identifier: MIT */
/* The broker's loop: one poll(2) over the clients' sockets and the library's descriptors. */
#include "broker.h"

#include <signal.h>
#include <stdlib.h>

#define LONGEST_SLEEP_US 500000 /* a signal between the look at its flag and poll waits no longer */
#define ENDING_US        10000000 /* what statements in flight may take at the end */
#define LIBRARY_SLOTS    32

static volatile sig_atomic_t stop_flag;

void host_stop(void)
{
	stop_flag = 1;
}

void host_complain(struct host *host, const char *doing, const PGresult *result)
{
	const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
	int64_t now = qret_now_us();

	if (now < host->silent_until_us)
		return;
	host->silent_until_us = now + 1000000;
	fprintf(stderr, "broker: %s: %s\n", doing, message ? message : "the connection was lost");
}

static int begin_clients(struct host *host)
{
	const struct settings *settings = host->settings;

	host->pushers = calloc((size_t)settings->pushers.value + 1, sizeof(*host->pushers));
	host->consumers = calloc((size_t)settings->consumers.value + 1, sizeof(*host->consumers));
	if (host->pushers == NULL || host->consumers == NULL)
		return -1;
	if (host->catalogue.count == 0)
		return 0;
	host->pusher_count = (size_t)settings->pushers.value;
	host->consumer_count = (size_t)settings->consumers.value;
	for (size_t i = 0; i < host->pusher_count; i++)
		if (pusher_begin(&host->pushers[i], host, (int)i) < 0)
			return -1;
	for (size_t i = 0; i < host->consumer_count; i++)
		if (consumer_begin(&host->consumers[i], host, (int)i) < 0)
			return -1;
	return 0;
}

int host_begin(struct host *host, const struct settings *settings)
{
	*host = (struct host){ .settings = settings };
	if (settings->queues.count + settings->partitions.count > 0 &&
	    catalogue_prepare(settings, &host->catalogue) < 0)
		return -1;
	if (retention_begin(&host->retention, settings) < 0)
		return -1;
	if (begin_clients(host) < 0)
		return -1;
	host->begin_us = qret_now_us();
	host->end_us = settings->duration.given
	                       ? host->begin_us + settings->duration.value * 1000000
	                       : INT64_MAX;
	return 0;
}

void host_end(struct host *host)
{
	for (size_t i = 0; i < host->pusher_count; i++)
		pusher_end(&host->pushers[i]);
	for (size_t i = 0; i < host->consumer_count; i++)
		consumer_end(&host->consumers[i]);
	retention_end(&host->retention);
	catalogue_free(&host->catalogue);
	free(host->pushers);
	free(host->consumers);
}

static int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Lets everybody send what is due. Returns when somebody wants to be called again. */
static int64_t tend(struct host *host)
{
	int64_t now = qret_now_us();
	int64_t deadline = now + LONGEST_SLEEP_US;

	for (size_t i = 0; i < host->pusher_count; i++)
		deadline = earlier(deadline, pusher_tend(&host->pushers[i], now));
	for (size_t i = 0; i < host->consumer_count; i++)
		deadline = earlier(deadline, consumer_tend(&host->consumers[i], now));
	retention_tend(&host->retention);
	return deadline;
}

static int poll_timeout_ms(int64_t deadline_us)
{
	int64_t left = deadline_us - qret_now_us();

	return left <= 0 ? 0 : (int)((left + 999) / 1000);
}

/* One round: send what is due, sleep until something can go on, move it on. */
static void serve_round(struct host *host)
{
	size_t clients = host->pusher_count + host->consumer_count;
	struct pollfd slots[128 + LIBRARY_SLOTS];
	int64_t deadline = earlier(tend(host), host->end_us);
	size_t used = 0;

	for (size_t i = 0; i < host->pusher_count; i++)
		deadline = earlier(deadline,
		                   client_wants(&host->pushers[i].client, &slots[used++]));
	for (size_t i = 0; i < host->consumer_count; i++)
		deadline = earlier(deadline,
		                   client_wants(&host->consumers[i].client, &slots[used++]));
	used += retention_wants(&host->retention, slots + used, LIBRARY_SLOTS, &deadline);
	if (poll(slots, used, poll_timeout_ms(deadline)) < 0)
		for (size_t i = 0; i < clients; i++)
			slots[i].revents = 0;
	for (size_t i = 0; i < host->pusher_count; i++)
		client_move(&host->pushers[i].client, slots[i].revents);
	for (size_t i = 0; i < host->consumer_count; i++)
		client_move(&host->consumers[i].client, slots[host->pusher_count + i].revents);
}

static int is_pushing(const struct host *host)
{
	for (size_t i = 0; i < host->pusher_count; i++)
		if (host->pushers[i].has_push)
			return 1;
	if (host->pusher_count == 0 || host->ending)
		return 0;
	return !host->settings->pushes.given || host->pushes_begun < host->settings->pushes.value;
}

static int is_drained(const struct host *host)
{
	for (size_t i = 0; i < host->consumer_count; i++)
		if (!consumer_is_drained(&host->consumers[i]))
			return 0;
	return 1;
}

/* Everything asked for is pushed: is that all, or is there something left to wait for? */
static int is_complete(const struct host *host)
{
	const struct settings *settings = host->settings;

	if (settings->drain)
		return is_drained(host);
	return settings->pushes.given && !settings->duration.given;
}

/* A subscription that was idle before the last push may not be any more: everybody looks again. */
static void look_again(struct host *host)
{
	for (size_t i = 0; i < host->consumer_count; i++)
		for (size_t k = 0; k < host->consumers[i].count; k++)
			host->consumers[i].subscriptions[k].idle = 0;
}

/* What is in flight may finish; the cycle ends between two batches. */
static int is_busy(const struct host *host)
{
	for (size_t i = 0; i < host->pusher_count; i++)
		if (host->pushers[i].has_push)
			return 1;
	for (size_t i = 0; i < host->consumer_count; i++)
		if (host->consumers[i].holds_batch)
			return 1;
	return host->retention.in_cycle;
}

static void wind_down(struct host *host)
{
	int64_t until = qret_now_us() + ENDING_US;

	host->ending = 1;
	retention_stop(&host->retention);
	host->end_us = until;
	while (is_busy(host) && qret_now_us() < until)
		serve_round(host);
}

void host_serve(struct host *host)
{
	int was_pushing = 1;
	int64_t end_us = host->end_us;

	while (!stop_flag && qret_now_us() < end_us) {
		int pushing = is_pushing(host);

		if (host->retention.ctx)
			qret_set_busy(host->retention.ctx, pushing);
		if (was_pushing && !pushing)
			look_again(host);
		was_pushing = pushing;
		if (!pushing && is_complete(host))
			break;
		serve_round(host);
	}
	host->end_us = qret_now_us();
	end_us = host->end_us;
	wind_down(host);
	host->end_us = end_us; /* the time that rates are reckoned over */
}
