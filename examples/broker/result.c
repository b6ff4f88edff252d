/* SPDX-License-Identifier: MIT */
/* What a run did: a JSON object for programs, a paragraph for people. */
#include "broker.h"
#include "text.h"

static double seconds(const struct host *host)
{
	int64_t elapsed = host->end_us - host->begin_us;

	return elapsed > 0 ? (double)elapsed / 1e6 : 1e-6;
}

static void print_counts(struct json *json, const struct host *host)
{
	const struct counts *counts = &host->counts;

	json_real(json, "seconds", seconds(host));
	json_integer(json, "pushes", counts->pushes);
	json_real(json, "push_rate", (double)counts->pushes / seconds(host));
	json_integer(json, "messages", counts->messages);
	json_integer(json, "duplicates", counts->duplicates);
	json_integer(json, "pushes_dropped", counts->late);
	json_integer(json, "push_errors", counts->push_errors);
	json_integer(json, "reprovisioned", counts->reprovisioned);
	json_integer(json, "pops", counts->pops);
	json_integer(json, "acks", counts->acks);
	json_integer(json, "dead_letters", counts->dead_letters);
	json_integer(json, "lost_leases", counts->lost_leases);
	json_integer(json, "consumer_errors", counts->consumer_errors);
}

static void print_retention(struct json *json, const struct retention *retention)
{
	const struct qret_cycle_report *totals = &retention->totals;

	json_open_object(json, "retention");
	json_integer(json, "cycles", retention->cycles);
	json_integer(json, "failed", retention->failed);
	json_integer(json, "steps", totals->steps);
	json_integer(json, "segments_deleted", totals->segments_deleted);
	json_integer(json, "messages_deleted", totals->messages_deleted);
	json_integer(json, "max_wait_evicted", totals->max_wait_evicted);
	json_integer(json, "txns_purged", totals->txns_purged);
	json_integer(json, "partitions_deleted", totals->partitions_deleted);
	json_integer(json, "events_deleted", totals->events_deleted);
	json_real(json, "busy_ms", (double)totals->elapsed_us / 1000.0);
	json_real(json, "longest_ms", (double)retention->longest_us / 1000.0);
	json_close_object(json);
}

static void print_json(const struct host *host, const struct histogram *all)
{
	struct json json;

	json_begin(&json, stdout);
	print_counts(&json, host);
	histogram_json(&json, "push_ms", all);
	histogram_json(&json, "push_ms_beside_cycle", &host->beside_cycle);
	histogram_json(&json, "push_ms_without_cycle", &host->without_cycle);
	histogram_json(&json, "push_ms_from_due", &host->from_due);
	if (host->retention.ctx)
		print_retention(&json, &host->retention);
	json_end(&json);
}

static void print_latency(const char *what, const struct histogram *histogram)
{
	char count[TEXT_SMALL];

	if (histogram->total == 0)
		return;
	printf("  %-26s %9s   %8.1f %8.1f %8.1f %8.1f\n", what,
	       text_count(count, (int64_t)histogram->total),
	       (double)histogram_quantile(histogram, 0.5) / 1000,
	       (double)histogram_quantile(histogram, 0.95) / 1000,
	       (double)histogram_quantile(histogram, 0.99) / 1000,
	       (double)histogram->most_us / 1000);
}

static void print_text(const struct host *host, const struct histogram *all)
{
	const struct counts *counts = &host->counts;
	char pushes[TEXT_SMALL], messages[TEXT_SMALL], pops[TEXT_SMALL];

	printf("%s pushes in %.1f s: %s messages, %lld duplicates refused, %lld errors\n",
	       text_count(pushes, counts->pushes), seconds(host),
	       text_count(messages, counts->messages), (long long)counts->duplicates,
	       (long long)(counts->push_errors + counts->consumer_errors));
	printf("%s segments read, %lld messages given up to the dead letters\n",
	       text_count(pops, counts->pops), (long long)counts->dead_letters);
	if (all->total > 0) {
		printf("  %-26s %9s   %8s %8s %8s %8s\n", "push latency in ms", "pushes", "p50",
		       "p95", "p99", "max");
		print_latency("while a cycle ran", &host->beside_cycle);
		print_latency("while none ran", &host->without_cycle);
	}
	if (host->retention.ctx)
		printf("retention: %lld cycles deleted %s segments\n",
		       (long long)host->retention.cycles,
		       text_count(messages, host->retention.totals.segments_deleted +
		                                    host->retention.totals.max_wait_evicted));
}

void result_print(const struct host *host)
{
	struct histogram all = host->without_cycle;

	histogram_merge(&all, &host->beside_cycle);
	if (host->settings->json)
		print_json(host, &all);
	else
		print_text(host, &all);
}
