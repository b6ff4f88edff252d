/* SPDX-License-Identifier: MIT */
/*
 * The library inside a host's own loop: a cycle is begun when it is due and moved on by one call
 * a round, so that pushes and pops are served in between, however much there is to delete.
 */
#include "broker.h"

#include <stdlib.h>
#include <string.h>

static void write_log(void *user_data, const struct qret_log_record *record)
{
	(void)user_data;
	fprintf(stderr, "retention: %s\n", record->text);
}

static int refuse(struct qret_ctx *ctx, const char *doing)
{
	const char *hint = qret_error_hint(ctx);

	fprintf(stderr, "broker: %s: %s%s%s\n", doing, qret_error_message(ctx), hint[0] ? "; " : "",
	        hint);
	return -1;
}

static int set_options(struct qret_ctx *ctx, const struct settings *settings)
{
	if (qret_set_option(ctx, "log_schema", settings->log_schema) < 0)
		return refuse(ctx, "log_schema");
	for (size_t i = 0; i < settings->options.count; i++) {
		char *pair = strdup(settings->options.items[i]);
		char *equals = pair ? strchr(pair, '=') : NULL;
		int rc = QRET_DONE;

		if (equals) {
			*equals = '\0';
			rc = qret_set_option(ctx, pair, equals + 1);
		}
		free(pair);
		if (equals == NULL)
			fprintf(stderr, "broker: --set takes NAME=VALUE\n");
		if (equals == NULL || rc < 0)
			return equals ? refuse(ctx, "--set") : -1;
	}
	return 0;
}

int retention_begin(struct retention *retention, const struct settings *settings)
{
	*retention = (struct retention){ 0 };
	if (!settings->retention)
		return 0;
	if (qret_ctx_new(&retention->ctx) != QRET_DONE)
		return -1;
	qret_set_log(retention->ctx, settings->verbose ? QRET_LOG_INFO : QRET_LOG_WARN, write_log,
	             NULL, NULL);
	if (qret_load_env(retention->ctx) < 0)
		return refuse(retention->ctx, "environment");
	if (set_options(retention->ctx, settings) < 0)
		return -1;
	if (qret_connect(retention->ctx, settings->dsn) != QRET_DONE)
		return refuse(retention->ctx, "connect");
	/* The first is due at once; where none can begin, the loop would try for ever. */
	if (qret_cycle_begin(retention->ctx) != QRET_DONE)
		return refuse(retention->ctx, "retention");
	retention->in_cycle = 1;
	return 0;
}

void retention_end(struct retention *retention)
{
	qret_ctx_free(retention->ctx);
	retention->ctx = NULL;
}

size_t retention_wants(struct retention *retention, struct pollfd *slots, size_t room,
                       int64_t *deadline_us)
{
	struct qret_poll_fd fds[32];
	uint32_t count = 0;
	int64_t due;

	if (retention->ctx == NULL || (retention->stopping && !retention->in_cycle))
		return 0;
	if (!retention->in_cycle)
		due = qret_next_cycle_us(retention->ctx);
	else
		due = retention->next_rc == QRET_MORE ? 0 : qret_deadline_us(retention->ctx);
	if (due < *deadline_us)
		*deadline_us = due;
	if (qret_poll_fds(retention->ctx, fds, 32, &count) != QRET_DONE)
		return 0;
	for (uint32_t i = 0; i < count && i < 32 && i < room; i++) {
		slots[i].fd = fds[i].fd;
		slots[i].events = (short)((fds[i].events & QRET_POLL_READ ? POLLIN : 0) |
		                          (fds[i].events & QRET_POLL_WRITE ? POLLOUT : 0));
	}
	return count < room ? count : room;
}

static void add_report(struct retention *retention, const struct qret_cycle_report *report)
{
	struct qret_cycle_report *totals = &retention->totals;

	retention->cycles++;
	retention->failed += report->outcome < 0;
	totals->steps += report->steps;
	totals->segments_deleted += report->segments_deleted;
	totals->messages_deleted += report->messages_deleted;
	totals->txns_purged += report->txns_purged;
	totals->max_wait_evicted += report->max_wait_evicted;
	totals->partitions_deleted += report->partitions_deleted;
	totals->metrics_purged += report->metrics_purged;
	totals->events_deleted += report->events_deleted;
	totals->elapsed_us += report->elapsed_us;
	if (report->elapsed_us > retention->longest_us)
		retention->longest_us = report->elapsed_us;
}

void retention_tend(struct retention *retention)
{
	struct qret_cycle_report report = { .size = sizeof(report) };
	int rc;

	if (retention->ctx == NULL)
		return;
	if (!retention->in_cycle) {
		if (qret_next_cycle_us(retention->ctx) > qret_now_us() ||
		    qret_cycle_begin(retention->ctx) != QRET_DONE)
			return;
		retention->in_cycle = 1;
	}
	rc = qret_cycle_process(retention->ctx);
	retention->next_rc = rc;
	if (rc == QRET_MORE || rc == QRET_WAIT)
		return;
	retention->in_cycle = 0;
	if (qret_cycle_get_report(retention->ctx, &report) == QRET_DONE)
		add_report(retention, &report);
}

void retention_stop(struct retention *retention)
{
	retention->stopping = 1;
	qret_stop(retention->ctx);
}
