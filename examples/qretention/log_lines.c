/* SPDX-License-Identifier: MIT */
/* The library's log records as lines on stderr. */
#include "driver.h"

#include <string.h>

static const char *level_name(int32_t level)
{
	switch (level) {
	case QRET_LOG_ERROR:
		return "error";
	case QRET_LOG_WARN:
		return "warn";
	case QRET_LOG_INFO:
		return "info";
	default:
		return "debug";
	}
}

static void write_record(void *user_data, const struct qret_log_record *record)
{
	struct driver *driver = user_data;

	if (driver->repeats_errors && record->level == QRET_LOG_ERROR)
		return; /* the command prints the same error, with its hint */
	progress_clear(driver->progress);
	fprintf(stderr, "%s: %s", level_name(record->level), record->text);
	if (record->suppressed > 0)
		fprintf(stderr, " suppressed=%lld", (long long)record->suppressed);
	putc('\n', stderr);
}

static int32_t wanted_level(const struct driver_settings *settings)
{
	if (settings->quiet)
		return QRET_LOG_NONE;
	if (settings->verbose > 1)
		return QRET_LOG_DEBUG;
	return settings->verbose ? QRET_LOG_INFO : QRET_LOG_WARN;
}

void log_lines_attach(struct driver *driver)
{
	qret_set_log(driver->ctx, wanted_level(&driver->settings), write_record, driver, NULL);
}
