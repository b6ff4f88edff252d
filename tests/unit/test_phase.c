/* SPDX-License-Identifier: MIT */
/* Phases with units of their own: the clean-up's cursor, the metrics' tables, steps by hand. L9, L10. */
#include "script_world.h"

#include <stdio.h>

static struct qret_cycle_report report;

static int cleanups;

static const char *clean_up(struct script_call *call)
{
	static const char *const answers[] = { "0 f 100 #5 3 0 - 0 -", "2 f 100 #9 0 2 #7 0 -",
		                               "0 f 100 #9 1 0 - 0 -", "1 t 100 - 0 0 - 0 -" };
	static const char *const after[] = { "-", "#5", "#9", "-" };

	if (strcmp(call->statement, "step_cleanup_v2") != 0)
		return NULL;
	ck_assert_int_lt(cleanups, 4);
	ck_assert_str_eq(strrchr(call->parameters, ' ') + 1, after[cleanups]);
	return answers[cleanups++];
}

/* L9, B49: spared candidates in front do not end the phase, as long as the cursor moves. */
START_TEST(phase_cleanup_follows_its_cursor)
{
	world_begin(0, 0);
	world_set("partition_cleanup", "on");
	world.before = clean_up;
	cleanups = 0;
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	ck_assert_int_eq(cleanups, 3);
	ck_assert_int_eq(report.partitions_deleted, 2);
	ck_assert_int_eq(report.items_locked, 4);
	ck_assert_contains(
		world.log,
		"event=orphan partition=00000000-0000-0000-0000-000000000007 partitions=2");
	world_end();
}
END_TEST

static int full_tables;

static const char *fill_tables(struct script_call *call)
{
	if (strcmp(call->statement, "metrics_purge") != 0)
		return NULL;
	return full_tables-- > 0 ? "1000 100" : "3 100";
}

/* L10: full batches are followed by another one of the same table. */
START_TEST(phase_metrics_purge_drains)
{
	world_begin(0, 0);
	world.before = fill_tables;
	full_tables = 3;
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	ck_assert_int_eq(script_sent("metrics_purge"), 8);
	ck_assert_int_eq(report.metrics_purged, 3015);
	world_end();
}
END_TEST

/* By hand, unit by unit: a step goes on where the last left off, and is done when all units are. */
START_TEST(phase_step_by_hand_goes_through_units)
{
	struct qret_step_result result = { .size = sizeof(result) };

	world_begin(0, 0);
	world.before = fill_tables;
	full_tables = 2;
	ck_assert_int_eq(qret_step(world.ctx, QRET_PHASE_METRICS_PURGE, NULL, &result), QRET_DONE);
	ck_assert_int_eq(result.rows_deleted, 1000);
	ck_assert_int_eq(result.done, 0);
	for (int i = 0; i < 5; i++) {
		ck_assert_int_eq(qret_step(world.ctx, QRET_PHASE_METRICS_PURGE, NULL, &result),
		                 QRET_DONE);
		ck_assert_int_eq(result.done, 0);
	}
	ck_assert_int_eq(qret_step(world.ctx, QRET_PHASE_METRICS_PURGE, NULL, &result), QRET_DONE);
	ck_assert_int_eq(result.done, 1);
	world_end();
}
END_TEST

int main(void)
{
	const TTest *tests[] = { phase_cleanup_follows_its_cursor, phase_metrics_purge_drains,
		                 phase_step_by_hand_goes_through_units, NULL };

	return unit_run("phase", tests);
}
