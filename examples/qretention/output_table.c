/* SPDX-License-Identifier: MIT */
/* The two tables that have a partition a row: the work list and the steps. Both are 80 wide. */
#include "driver.h"
#include "text.h"

#include <inttypes.h>

#define UUID_WIDTH 36

/* A cutoff as the age beyond which rows go: what the policy says, whatever the clock. */
static const char *age(char buffer[TEXT_SMALL], int64_t cutoff_us, int64_t clock_us)
{
	return cutoff_us == QRET_CUTOFF_OFF ? "-" : text_duration(buffer, clock_us - cutoff_us);
}

void output_worklist_head(void)
{
	printf("%-*s %10s %10s %10s %10s\n", UUID_WIDTH, "partition", "all after", "consumed",
	       "sidecar", "max wait");
}

void output_worklist_row(const struct qret_work_item *item, int64_t clock_us)
{
	char id[TEXT_SMALL], all[TEXT_SMALL], completed[TEXT_SMALL], txns[TEXT_SMALL],
		wait[TEXT_SMALL];

	printf("%-*s %10s %10s %10s %10s\n", UUID_WIDTH, text_uuid(id, item->partition_id),
	       age(all, item->all_cutoff_us, clock_us),
	       age(completed, item->completed_cutoff_us, clock_us),
	       age(txns, item->txns_cutoff_us, clock_us),
	       age(wait, item->max_wait_cutoff_us, clock_us));
}

void output_step_head(void)
{
	printf("%-*s %9s %9s %10s %4s %7s\n", UUID_WIDTH, "partition", "rows", "messages",
	       "watermark", "done", "took");
}

void output_step_row(const char *name, const struct qret_step_result *result)
{
	char rows[TEXT_SMALL], messages[TEXT_SMALL], watermark[TEXT_SMALL] = "-", took[TEXT_SMALL];

	/* A place in the log and no count: without separators, so that long ones fit as well. */
	if (result->watermark >= 0)
		snprintf(watermark, sizeof(watermark), "%" PRId64, result->watermark);
	printf("%-*s %9s %9s %10s %4s %7s\n", UUID_WIDTH, name,
	       text_count(rows, result->rows_deleted),
	       text_count(messages, result->messages_deleted), watermark,
	       result->done ? "yes" : "no", text_duration(took, result->elapsed_us));
}
