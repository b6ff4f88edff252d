/* SPDX-License-Identifier: MIT */
/*
 * A connection that pushes: at its share of the rate, one push in flight. A push whose partition
 * retention deleted in that instant is refused by the server; the partition is then made anew and
 * the same push sent again, so no message is lost.
 */
#include "broker.h"

#include <stdlib.h>
#include <string.h>

#define HASH_SIZE      16
#define MOST_BEHIND_US 1000000 /* what a stall may owe; beyond it pushes are dropped, and counted */
#define GONE           "23503"

static int64_t spread_of(const struct pusher *pusher)
{
	const struct host *host = pusher->host;
	int64_t wanted = host->settings->spread.value;

	return wanted < (int64_t)host->catalogue.count ? wanted : (int64_t)host->catalogue.count;
}

static struct partition *target_at(const struct pusher *pusher, int64_t index)
{
	const struct catalogue *catalogue = &pusher->host->catalogue;

	return &catalogue->partitions[(pusher->target + (size_t)index) % catalogue->count];
}

static void fill(struct random *random, char *bytes, size_t size)
{
	for (size_t i = 0; i < size; i += sizeof(uint64_t)) {
		uint64_t value = random_next(random);
		size_t left = size - i;

		memcpy(bytes + i, &value, left < sizeof(value) ? left : sizeof(value));
	}
}

/* Makes up the next push: new messages, or with some luck those of the push before once more. */
static void compose(struct pusher *pusher)
{
	const struct settings *settings = pusher->host->settings;
	int repeat = pusher->next_us > 0 && pusher->sent_us > 0 &&
	             (int64_t)random_below(&pusher->random, 100) < settings->duplicates.value;

	if (repeat)
		return;
	pusher->target = (size_t)random_below(&pusher->random, pusher->host->catalogue.count);
	fill(&pusher->random, pusher->hashes, (size_t)settings->messages.value * HASH_SIZE);
	if (settings->messages.value * settings->payload.value >= (int64_t)sizeof(uint64_t))
		fill(&pusher->random, pusher->blob, sizeof(uint64_t));
}

/* The targets' ids as an array: {id,id}. */
static const char *target_list(struct pusher *pusher)
{
	char *end = pusher->list;

	for (int64_t i = 0; i < spread_of(pusher); i++)
		end += sprintf(end, "%c%s", i ? ',' : '{', target_at(pusher, i)->id);
	strcpy(end, "}");
	return pusher->list;
}

static void send_push(struct pusher *pusher)
{
	const struct host *host = pusher->host;
	const struct settings *settings = host->settings;
	int many = spread_of(pusher) > 1;
	char count[24];
	struct client_value values[] = {
		{ many ? target_list(pusher) : target_at(pusher, 0)->id, 0 },
		{ count, 0 },
		{ pusher->hashes, (int)settings->messages.value * HASH_SIZE },
		{ pusher->blob, (int)(settings->messages.value * settings->payload.value) },
	};

	snprintf(count, sizeof(count), "%lld", (long long)settings->messages.value);
	pusher->refused = 0;
	pusher->sent_us = qret_now_us();
	pusher->beside_cycle = host->retention.in_cycle;
	client_send(&pusher->client, host->catalogue.calls[many ? CALL_PUSH_MANY : CALL_PUSH],
	            values, 4);
}

static void send_provision(struct pusher *pusher)
{
	const struct partition *partition = target_at(pusher, pusher->provisioned);
	struct client_value values[] = { { partition->queue, 0 }, { partition->name, 0 } };

	client_send(&pusher->client, pusher->host->catalogue.calls[CALL_PROVISION], values, 2);
}

static void count_push(struct pusher *pusher, int duplicate)
{
	struct host *host = pusher->host;
	int64_t now = qret_now_us();
	int beside = pusher->beside_cycle || host->retention.in_cycle;

	pusher->has_push = 0;
	host->counts.pushes++;
	histogram_add(beside ? &host->beside_cycle : &host->without_cycle, now - pusher->sent_us);
	histogram_add(&host->from_due, now - pusher->due_us);
	if (duplicate) {
		host->counts.duplicates++;
		return;
	}
	host->counts.messages += host->settings->messages.value * spread_of(pusher);
	for (int64_t i = 0; i < spread_of(pusher); i++)
		target_at(pusher, i)->pushed++;
}

/* A refusal because the partition is gone is mended; any other error gives the push up. */
static void push_failed(struct pusher *pusher, const PGresult *result)
{
	const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);

	if (state && strcmp(state, GONE) == 0 && target_at(pusher, 0)->name[0]) {
		pusher->refused = 1;
		pusher->provisioned = 0;
		return;
	}
	pusher->has_push = 0;
	pusher->host->counts.push_errors++;
	host_complain(pusher->host, "push", result);
}

static void provisioned(struct pusher *pusher, const PGresult *result)
{
	struct partition *partition = target_at(pusher, pusher->provisioned);

	if (PQresultStatus(result) != PGRES_TUPLES_OK) {
		push_failed(pusher, result);
		return;
	}
	snprintf(partition->id, sizeof(partition->id), "%s", PQgetvalue(result, 0, 0));
	if (++pusher->provisioned < spread_of(pusher))
		return;
	pusher->refused = 0;
	pusher->host->counts.reprovisioned++;
}

static void answered(void *owner, const PGresult *result)
{
	struct pusher *pusher = owner;

	if (pusher->refused)
		provisioned(pusher, result);
	else if (PQresultStatus(result) == PGRES_TUPLES_OK)
		count_push(pusher, PQgetisnull(result, 0, 0));
	else
		push_failed(pusher, result);
}

int pusher_begin(struct pusher *pusher, struct host *host, int number)
{
	const struct settings *settings = host->settings;
	size_t blob_size = (size_t)(settings->messages.value * settings->payload.value);

	*pusher = (struct pusher){ .host = host };
	pusher->random.state = (uint64_t)settings->seed.value * 0x9e3779b97f4a7c15u + 1 +
	                       (uint64_t)number * 0xbf58476d1ce4e5b9u;
	pusher->hashes = malloc((size_t)settings->messages.value * HASH_SIZE);
	pusher->blob = malloc(blob_size + 1);
	pusher->list = malloc((size_t)settings->spread.value * 40 + 2);
	if (!pusher->hashes || !pusher->blob || !pusher->list)
		return -1;
	fill(&pusher->random, pusher->blob, blob_size);
	client_begin(&pusher->client, settings->dsn, answered, pusher);
	return 0;
}

void pusher_end(struct pusher *pusher)
{
	client_end(&pusher->client);
	free(pusher->hashes);
	free(pusher->blob);
	free(pusher->list);
}

static int64_t period_us(const struct host *host)
{
	return host->settings->rate.value
	               ? (int64_t)host->pusher_count * 1000000 / host->settings->rate.value
	               : 0;
}

/* Sets when the next push is due. What a long stall owes is not caught up in a burst. */
static void schedule(struct pusher *pusher, int64_t now)
{
	int64_t period = period_us(pusher->host);

	if (pusher->next_us == 0 || period == 0)
		pusher->next_us = now;
	pusher->due_us = pusher->next_us;
	pusher->next_us += period;
	while (period > 0 && pusher->next_us < now - MOST_BEHIND_US) {
		pusher->next_us += period;
		pusher->host->counts.late++;
	}
}

int64_t pusher_tend(struct pusher *pusher, int64_t now)
{
	struct host *host = pusher->host;

	if (!client_is_idle(&pusher->client))
		return INT64_MAX;
	if (pusher->refused) {
		send_provision(pusher);
		return INT64_MAX;
	}
	if (pusher->has_push) { /* refused before, and its partition is there again */
		send_push(pusher);
		return INT64_MAX;
	}
	if (host->ending ||
	    (host->settings->pushes.given && host->pushes_begun >= host->settings->pushes.value))
		return INT64_MAX;
	if (pusher->next_us > now)
		return pusher->next_us;
	compose(pusher);
	schedule(pusher, now);
	host->pushes_begun++;
	pusher->has_push = 1;
	send_push(pusher);
	return INT64_MAX;
}
