/* SPDX-License-Identifier: MIT */
/* Calls every kind of declaration of the header; valid C99 and C++11. It needs no server. */
#include "qretention.h"

#include <stdio.h>
#include <string.h>

static int records, samples, freed;

static void on_log(void *user_data, const struct qret_log_record *record)
{
	(void)user_data;
	if (record->size >= sizeof(*record) && record->text[0] != 0)
		records++;
}

static void on_metric(void *user_data, const struct qret_metric *metric)
{
	(void)user_data;
	(void)metric;
	samples++;
}

static void on_free(void *user_data)
{
	*(int *)user_data += 1;
}

static int use_context(struct qret_ctx *ctx)
{
	char value[8];
	size_t length = 0;
	uint32_t count = 0;

	if (qret_set_log(ctx, QRET_LOG_DEBUG, on_log, &freed, on_free) != QRET_DONE)
		return 1;
	if (qret_set_metrics(ctx, on_metric, &freed, on_free) != QRET_DONE)
		return 2;
	if (qret_set_option(ctx, "partition_cleanup_days", "0") != QRET_DONE || records != 1)
		return 3;
	if (qret_get_option(ctx, "log_schema", value, sizeof(value), &length) != QRET_DONE ||
	    length != 5)
		return 4;
	if (strcmp(value, "queen") != 0)
		return 5;
	if (qret_set_option(ctx, "nonsense", "1") != QRET_ERR_OPTION ||
	    qret_error_message(ctx)[0] == 0)
		return 6;
	if (qret_cycle_begin(ctx) != QRET_ERR_STATE || qret_error_hint(ctx)[0] == 0)
		return 7;
	if (qret_poll_fds(ctx, NULL, 0, &count) != QRET_DONE || count < 1)
		return 8;
	if (qret_deadline_us(ctx) != INT64_MAX || qret_next_cycle_us(ctx) > qret_now_us())
		return 9;
	qret_stop(ctx);
	qret_resume(ctx);
	return qret_set_busy(ctx, 1) == QRET_DONE ? 0 : 10;
}

int main(void)
{
	struct qret_ctx *ctx = NULL;
	struct qret_work_item item;
	struct qret_option_info info;
	struct qret_metric metric;
	int rc;

	memset(&item, 0, sizeof(item));
	memset(&info, 0, sizeof(info));
	memset(&metric, 0, sizeof(metric));
	item.size = sizeof(item);
	item.all_cutoff_us = QRET_CUTOFF_OFF;
	info.size = sizeof(info);
	metric.size = sizeof(metric);
	if (qret_version_number() < QRET_VERSION_NUMBER || strcmp(QRET_VERSION, "0.1.0") < 0)
		return 20;
	if (qret_option_get_info(0, &info) != QRET_DONE ||
	    qret_metric_get_info(0, &metric) != QRET_DONE)
		return 21;
	if (qret_ctx_new(&ctx) != QRET_DONE)
		return 22;
	rc = use_context(ctx);
	if (qret_worklist_count(NULL) != 0 ||
	    qret_worklist_get(NULL, 0, &item) != QRET_ERR_ARGUMENT)
		rc = 23;
	qret_worklist_free(NULL);
	qret_ctx_free(ctx);
	qret_ctx_free(NULL);
	if (freed != 2)
		rc = 24;
	printf("%s %s\n", qret_version(), qret_strerror(rc));
	return rc;
}
