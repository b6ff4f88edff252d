/* SPDX-License-Identifier: MIT */
/*
 * A connection that pops and acks for its share of the groups, one statement at a time. A fast
 * group acks as it pops; a slow one leases, acks, gives some messages up to the dead letters, and
 * reads only every second segment's worth; an absent one registers and is never seen again.
 */
#include "broker.h"

#include <stdlib.h>
#include <string.h>

#define NOTHING_US 20000 /* pause once every subscription had nothing */
#define LEASE      "30"  /* seconds */

static struct subscription *current(struct consumer *consumer)
{
	return &consumer->subscriptions[consumer->current];
}

static const char *current_partition(struct consumer *consumer)
{
	return consumer->host->catalogue.partitions[current(consumer)->partition].id;
}

static void send(struct consumer *consumer, enum broker_call call, const char *fourth)
{
	struct client_value values[] = {
		{ current_partition(consumer), 0 },
		{ current(consumer)->group->name, 0 },
		{ consumer->worker, 0 },
		{ fourth, 0 },
	};
	int count = call == CALL_SEEK ? 2 : fourth ? 4 : 3;

	consumer->asked = call;
	client_send(&consumer->client, consumer->host->catalogue.calls[call], values, count);
}

static void next_subscription(struct consumer *consumer, int found_something)
{
	current(consumer)->idle = !found_something;
	consumer->found_nothing = found_something ? 0 : consumer->found_nothing + 1;
	consumer->current = (consumer->current + 1) % consumer->count;
	if (consumer->found_nothing >= consumer->count) {
		consumer->found_nothing = 0;
		consumer->next_us = qret_now_us() + NOTHING_US;
	}
}

static int row_is(const PGresult *result, const char *outcome)
{
	return strcmp(PQgetvalue(result, 0, 0), outcome) == 0;
}

static void popped(struct consumer *consumer, const PGresult *result)
{
	struct subscription *subscription = current(consumer);

	if (!row_is(result, "batch")) {
		next_subscription(consumer, 0);
		return;
	}
	consumer->host->counts.pops++;
	subscription->batches++;
	if (subscription->group->mode == GROUP_FAST) {
		next_subscription(consumer, 1);
		return;
	}
	consumer->holds_batch = 1;
	snprintf(consumer->first_offset, sizeof(consumer->first_offset), "%s",
	         PQgetvalue(result, 0, 1));
}

static void settled(struct consumer *consumer, const PGresult *result)
{
	struct counts *counts = &consumer->host->counts;

	consumer->holds_batch = 0;
	if (!row_is(result, "t"))
		counts->lost_leases++;
	else if (consumer->asked == CALL_DEAD_LETTER)
		counts->dead_letters++;
	else
		counts->acks++;
	next_subscription(consumer, 1);
}

static void answered(void *owner, const PGresult *result)
{
	struct consumer *consumer = owner;

	if (PQresultStatus(result) != PGRES_TUPLES_OK) {
		consumer->host->counts.consumer_errors++;
		consumer->holds_batch = 0;
		host_complain(consumer->host, "consume", result);
		next_subscription(consumer, 0);
		return;
	}
	switch (consumer->asked) {
	case CALL_POP:
		popped(consumer, result);
		break;
	case CALL_SEEK:
		current(consumer)->registered = 1;
		next_subscription(consumer, 0);
		break;
	default:
		settled(consumer, result);
	}
}

/* Every consumer takes each N-th of all (partition, group) pairs. */
static int subscribe(struct consumer *consumer, int number)
{
	const struct catalogue *catalogue = &consumer->host->catalogue;
	size_t pair = 0;

	for (size_t i = 0; i < catalogue->count; i++) {
		const struct queue_spec *spec = catalogue->partitions[i].spec;

		for (int group = 0; spec && group < spec->group_count; group++, pair++) {
			struct subscription *grown;

			if (pair % consumer->host->consumer_count != (size_t)number)
				continue;
			grown = realloc(consumer->subscriptions,
			                (consumer->count + 1) * sizeof(*grown));
			if (grown == NULL)
				return -1;
			consumer->subscriptions = grown;
			grown[consumer->count++] = (struct subscription){
				.partition = i, .group = &spec->groups[group]
			};
		}
	}
	return 0;
}

int consumer_begin(struct consumer *consumer, struct host *host, int number)
{
	*consumer = (struct consumer){ .host = host };
	consumer->random.state = (uint64_t)host->settings->seed.value * 31 + (uint64_t)number + 7;
	snprintf(consumer->worker, sizeof(consumer->worker), "worker-%d", number + 1);
	client_begin(&consumer->client, host->settings->dsn, answered, consumer);
	return subscribe(consumer, number);
}

void consumer_end(struct consumer *consumer)
{
	client_end(&consumer->client);
	free(consumer->subscriptions);
}

static void settle_batch(struct consumer *consumer)
{
	int give_up = (int64_t)random_below(&consumer->random, 100) <
	              consumer->host->settings->dead_letters.value;

	if (give_up)
		send(consumer, CALL_DEAD_LETTER, consumer->first_offset);
	else
		send(consumer, CALL_ACK, NULL);
}

/* What the current subscription does next; 0 if that is nothing. */
static int ask(struct consumer *consumer)
{
	const struct subscription *subscription = current(consumer);
	int64_t pushed = consumer->host->catalogue.partitions[subscription->partition].pushed;

	switch (subscription->group->mode) {
	case GROUP_ABSENT:
		if (subscription->registered)
			return 0;
		send(consumer, CALL_SEEK, NULL);
		return 1;
	case GROUP_SLOW:
		if (subscription->batches * 2 >= pushed)
			return 0;
		send(consumer, CALL_POP, LEASE);
		return 1;
	default:
		send(consumer, CALL_POP, "0");
		return 1;
	}
}

int64_t consumer_tend(struct consumer *consumer, int64_t now)
{
	if (consumer->count == 0 || !client_is_idle(&consumer->client))
		return INT64_MAX;
	if (consumer->holds_batch) {
		settle_batch(consumer);
		return INT64_MAX;
	}
	if (consumer->host->ending && !consumer->host->settings->drain)
		return INT64_MAX;
	while (consumer->next_us <= now) {
		if (ask(consumer))
			return INT64_MAX;
		next_subscription(consumer, 0);
	}
	return consumer->next_us;
}

int consumer_is_drained(const struct consumer *consumer)
{
	for (size_t i = 0; i < consumer->count; i++)
		if (!consumer->subscriptions[i].idle)
			return 0;
	return 1;
}
