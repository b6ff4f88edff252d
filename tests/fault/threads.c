/* SPDX-License-Identifier: MIT */
/*
 * Two contexts in two threads, and two more threads that stop, resume and busy both. Built with
 * ThreadSanitizer by test_sanitizers.py. Says how many cycles ended well.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "qretention.h"

#define HOSTS 2

struct host {
	struct qret_ctx *ctx;
	pthread_t thread;
	int cycles, good, errors;
	long lines;
};

static struct host hosts[HOSTS];
static atomic_int over;

static void on_log(void *user_data, const struct qret_log_record *record)
{
	(void)record;
	((struct host *)user_data)->lines++;
}

static void on_metric(void *user_data, const struct qret_metric *metric)
{
	(void)metric;
	((struct host *)user_data)->lines++;
}

static void *sweep(void *data)
{
	struct host *host = data;
	struct qret_cycle_report report = { .size = sizeof(report) };

	while (!atomic_load(&over)) {
		int rc = qret_run_cycle(host->ctx, &report);

		host->cycles++;
		host->good += rc == QRET_DONE || rc == QRET_BUSY;
		if (rc < 0) {
			host->errors++;
			fprintf(stderr, "%s: %s\n", qret_strerror(rc),
			        qret_error_message(host->ctx));
		}
		if (rc == QRET_STOPPED)
			usleep(1000);
		else
			qret_wait(host->ctx);
	}
	return NULL;
}

static void *meddle(void *data)
{
	unsigned seed = (unsigned)(size_t)data;

	while (!atomic_load(&over)) {
		struct host *host = &hosts[rand_r(&seed) % HOSTS];

		switch (rand_r(&seed) % 4) {
		case 0:
			qret_stop(host->ctx);
			break;
		case 1:
			qret_set_busy(host->ctx, (int32_t)(rand_r(&seed) % 2));
			break;
		default:
			qret_resume(host->ctx);
		}
		usleep(rand_r(&seed) % 3000);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t meddlers[2];
	int cycles = 0, good = 0, errors = 0;

	if (argc != 3)
		return 2;
	for (int i = 0; i < HOSTS; i++) {
		if (qret_ctx_new(&hosts[i].ctx) != QRET_DONE ||
		    qret_connect(hosts[i].ctx, argv[1]) != QRET_DONE)
			return 3;
		qret_set_log(hosts[i].ctx, QRET_LOG_DEBUG, on_log, &hosts[i], NULL);
		qret_set_metrics(hosts[i].ctx, on_metric, &hosts[i], NULL);
		qret_set_option(hosts[i].ctx, "interval_ms", "5");
		qret_set_option(hosts[i].ctx, "parallelism", i == 0 ? "1" : "2");
		pthread_create(&hosts[i].thread, NULL, sweep, &hosts[i]);
	}
	for (size_t i = 0; i < 2; i++)
		pthread_create(&meddlers[i], NULL, meddle, (void *)(i + 1));
	sleep((unsigned)atoi(argv[2]));
	atomic_store(&over, 1);
	for (int i = 0; i < 2; i++)
		pthread_join(meddlers[i], NULL);
	for (int i = 0; i < HOSTS; i++) {
		qret_stop(hosts[i].ctx);
		pthread_join(hosts[i].thread, NULL);
		cycles += hosts[i].cycles;
		good += hosts[i].good;
		errors += hosts[i].errors;
		qret_ctx_free(hosts[i].ctx);
	}
	printf("%d %d %d\n", cycles, good, errors);
	return 0;
}
