/* SPDX-License-Identifier: MIT */
/* One cycle through the non-blocking calls, so that progress can be shown while it runs. */
#include "driver.h"

static int drive(struct driver *driver)
{
	struct qret_cycle_report report = { .size = sizeof(report) };
	int rc = qret_cycle_begin(driver->ctx);

	if (rc != QRET_DONE)
		return rc;
	for (;;) {
		rc = qret_cycle_process(driver->ctx);
		if (rc != QRET_MORE && rc != QRET_WAIT)
			return rc;
		if (driver->progress != NULL &&
		    qret_cycle_get_report(driver->ctx, &report) == QRET_DONE)
			progress_show(driver->progress, &report);
		if (rc == QRET_WAIT) {
			rc = qret_wait(driver->ctx);
			if (rc < 0)
				return rc;
		}
	}
}

int cycle_drive(struct driver *driver, const struct progress_goal *goal,
                struct qret_cycle_report *ret_report, struct failure *ret_failure)
{
	int rc;

	driver->progress = progress_begin(driver, goal);
	rc = drive(driver);
	failure_take(driver->ctx, rc, ret_failure); /* before the next call forgets it */
	*ret_report = (struct qret_cycle_report){ .size = sizeof(*ret_report) };
	if (qret_cycle_get_report(driver->ctx, ret_report) != QRET_DONE)
		*ret_report = (struct qret_cycle_report){ .size = sizeof(*ret_report) };
	ret_report->outcome = rc;
	progress_end(driver->progress);
	driver->progress = NULL;
	return rc;
}

static int64_t visits_of(const struct qret_work_item *item)
{
	return (item->all_cutoff_us != QRET_CUTOFF_OFF ||
	        item->completed_cutoff_us != QRET_CUTOFF_OFF) +
	       (item->txns_cutoff_us != QRET_CUTOFF_OFF) +
	       (item->max_wait_cutoff_us != QRET_CUTOFF_OFF);
}

/* A list that the limit cut short tells no total. */
static int is_complete(struct driver *driver, uint64_t count)
{
	char limit[24] = "";
	uint64_t value = 0;

	if (qret_get_option(driver->ctx, "worklist_limit", limit, sizeof(limit), NULL) != QRET_DONE)
		return 0;
	for (const char *digit = limit; *digit >= '0' && *digit <= '9'; digit++)
		value = value * 10 + (uint64_t)(*digit - '0');
	return value == 0 || count < value;
}

int64_t cycle_count_visits(struct driver *driver)
{
	struct qret_work_item item = { .size = sizeof(item) };
	struct qret_worklist *list = NULL;
	int64_t visits = 0;

	if (qret_worklist_build(driver->ctx, &list) != QRET_DONE)
		return 0;
	if (is_complete(driver, qret_worklist_count(list)))
		for (uint64_t i = 0; qret_worklist_get(list, i, &item) == QRET_DONE; i++)
			visits += visits_of(&item);
	qret_worklist_free(list);
	return visits;
}
