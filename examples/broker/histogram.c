/* SPDX-License-Identifier: MIT */
/*
 * A histogram of latencies with a bounded relative error: 32 buckets for each power of two, so
 * that a percentile is right to 3 % from a microsecond to hours, in 8 kB.
 */
#include "broker.h"

#define STEPS      32 /* buckets a power of two */
#define STEPS_BITS 5

static size_t bucket_of(int64_t us)
{
	uint64_t value = us > 0 ? (uint64_t)us : 0;
	int shift = 0;
	size_t bucket;

	while (value >> shift >= 2 * STEPS)
		shift++;
	bucket = (size_t)(((uint64_t)shift << STEPS_BITS) + (value >> shift));
	return bucket < HISTOGRAM_BUCKETS ? bucket : HISTOGRAM_BUCKETS - 1;
}

/* The highest latency that falls into a bucket. */
static int64_t bucket_top(size_t bucket)
{
	size_t shift = bucket < 2 * STEPS ? 0 : bucket / STEPS - 1;

	return (int64_t)(((bucket - shift * STEPS + 1) << shift) - 1);
}

void histogram_add(struct histogram *histogram, int64_t us)
{
	histogram->counts[bucket_of(us)]++;
	histogram->total++;
	histogram->sum_us += us;
	if (us > histogram->most_us)
		histogram->most_us = us;
}

void histogram_merge(struct histogram *into, const struct histogram *from)
{
	for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++)
		into->counts[i] += from->counts[i];
	into->total += from->total;
	into->sum_us += from->sum_us;
	if (from->most_us > into->most_us)
		into->most_us = from->most_us;
}

int64_t histogram_quantile(const struct histogram *histogram, double share)
{
	double wanted = share * (double)histogram->total;
	uint64_t seen = 0;

	for (size_t i = 0; i < HISTOGRAM_BUCKETS && histogram->total > 0; i++) {
		int64_t top = bucket_top(i);

		seen += histogram->counts[i];
		if ((double)seen >= wanted && seen > 0)
			return top < histogram->most_us ? top : histogram->most_us;
	}
	return histogram->most_us;
}

void histogram_json(struct json *json, const char *key, const struct histogram *histogram)
{
	double count = histogram->total ? (double)histogram->total : 1.0;

	json_open_object(json, key);
	json_integer(json, "count", (int64_t)histogram->total);
	json_real(json, "mean", (double)histogram->sum_us / count / 1000.0);
	json_real(json, "p50", (double)histogram_quantile(histogram, 0.50) / 1000.0);
	json_real(json, "p95", (double)histogram_quantile(histogram, 0.95) / 1000.0);
	json_real(json, "p99", (double)histogram_quantile(histogram, 0.99) / 1000.0);
	json_real(json, "p999", (double)histogram_quantile(histogram, 0.999) / 1000.0);
	json_real(json, "max", (double)histogram->most_us / 1000.0);
	json_close_object(json);
}
