/* SPDX-License-Identifier: MIT */
/*
 * The line that a person at a terminal watches while a cycle runs. It goes to stderr, and only
 * where both outputs are terminals: nothing of it ever reaches a pipe or a file.
 */
#include "driver.h"
#include "text.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define FIRST_US    250000 /* shorter cycles show no line at all */
#define EVERY_US    100000
#define FORETELL_US 1000000 /* before that a rate says nothing about the time left */

struct progress {
	struct progress_goal goal;
	int64_t begin_us;
	int64_t next_us;
	int shown;
};

int progress_wanted(const struct driver *driver)
{
	const char *terminal = getenv("TERM");

	if (driver->settings.json || driver->settings.quiet)
		return 0;
	if (terminal != NULL && strcmp(terminal, "dumb") == 0)
		return 0;
	return isatty(STDOUT_FILENO) && isatty(STDERR_FILENO);
}

struct progress *progress_begin(const struct driver *driver, const struct progress_goal *goal)
{
	struct progress *progress;

	if (!progress_wanted(driver))
		return NULL;
	progress = calloc(1, sizeof(*progress));
	if (progress == NULL)
		return NULL;
	if (goal != NULL)
		progress->goal = *goal;
	progress->begin_us = qret_now_us();
	progress->next_us = progress->begin_us + FIRST_US;
	return progress;
}

static int64_t rows_gone(const struct qret_cycle_report *report)
{
	return report->segments_deleted + report->max_wait_evicted + report->txns_purged +
	       report->partitions_deleted + report->metrics_purged + report->events_deleted +
	       report->deliveries_deleted;
}

/* Microseconds left if the rest goes as fast as what is done; -1 where that is not known. */
static int64_t time_left(const struct progress *progress, const struct qret_cycle_report *report,
                         int64_t elapsed)
{
	int64_t goal = progress->goal.rows ? progress->goal.rows : progress->goal.visits;
	int64_t done = progress->goal.rows ? report->events_deleted : report->partitions;

	if (elapsed < FORETELL_US || done <= 0 || done >= goal)
		return -1;
	return (int64_t)((double)elapsed / (double)done * (double)(goal - done));
}

static size_t terminal_width(void)
{
	struct winsize size;

	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 &&
	    size.ws_col < TEXT_WIDTH)
		return size.ws_col;
	return TEXT_WIDTH;
}

__attribute__((format(printf, 3, 4))) static void append(char *line, size_t size,
                                                         const char *format, ...)
{
	size_t used = strlen(line);
	va_list values;

	va_start(values, format);
	vsnprintf(line + used, size - used, format, values);
	va_end(values);
}

static void write_line(const struct progress *progress, const struct qret_cycle_report *report,
                       int64_t elapsed)
{
	char line[TEXT_WIDTH * 3] = "  ";
	char number[TEXT_SMALL];
	int64_t rows = rows_gone(report);
	int64_t left = time_left(progress, report, elapsed);

	append(line, sizeof(line), "%s", text_count(number, report->partitions));
	if (progress->goal.visits > 0)
		append(line, sizeof(line), " of %s", text_count(number, progress->goal.visits));
	append(line, sizeof(line), " partitions");
	append(line, sizeof(line), ", %s rows gone", text_count(number, rows));
	append(line, sizeof(line), ", %s rows/s",
	       text_count(number, (int64_t)((double)rows * 1e6 / (double)elapsed)));
	if (left >= 0)
		append(line, sizeof(line), ", about %s left", text_duration(number, left));
	fprintf(stderr, "\r%.*s\033[K", (int)terminal_width() - 1, line);
}

void progress_show(struct progress *progress, const struct qret_cycle_report *report)
{
	int64_t now;

	if (progress == NULL)
		return;
	now = qret_now_us();
	if (now < progress->next_us)
		return;
	progress->next_us = now + EVERY_US;
	progress->shown = 1;
	write_line(progress, report, now - progress->begin_us);
	fflush(stderr);
}

void progress_clear(struct progress *progress)
{
	if (progress == NULL || !progress->shown)
		return;
	fputs("\r\033[K", stderr);
	fflush(stderr);
	progress->shown = 0;
}

void progress_end(struct progress *progress)
{
	progress_clear(progress);
	free(progress);
}
