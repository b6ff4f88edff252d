/* SPDX-License-Identifier: MIT */
/* How much is in flight, and on how many connections. L22, B19, B70. */
#include "script_world.h"

#include <stdio.h>

static struct qret_cycle_report report;

static int64_t flying[65], flying_most;
static bool limit_broken;
static int64_t limit;

/* Rows between send and answer, per connection; answers come in the order of sending, half a second later. */
static const char *count_flying(struct script_call *call)
{
	static struct {
		int64_t rows, until_us;
	} sent[65][256];

	if (strncmp(call->statement, "step_retention", 14) != 0)
		return NULL;
	flying[call->connection] = world_rows_of(call);
	for (int i = 0; i < 256; i++) {
		if (sent[call->connection][i].until_us > script_now_us())
			flying[call->connection] += sent[call->connection][i].rows;
	}
	for (int i = 0; i < 256; i++) {
		if (sent[call->connection][i].until_us <= script_now_us()) {
			sent[call->connection][i].rows = world_rows_of(call);
			sent[call->connection][i].until_us = script_now_us() + 500000;
			break;
		}
	}
	call->delay_ms = 500;
	limit_broken = limit_broken || flying[call->connection] > limit;
	flying_most = flying[call->connection] > flying_most ? flying[call->connection]
	                                                     : flying_most;
	return NULL;
}

/* Many small partitions, then a few large ones among them: the window opens and closes, the bound stays. */
START_TEST(runner_rows_in_flight_bounded)
{
	static const char *const sizes[] = { "10", "100", "1000" };

	for (size_t i = 0; i < COUNT_OF(sizes); i++) {
		world_begin(600, 1);
		world.before = count_flying;
		world_set("batch_size", sizes[i]);
		limit = i == 0 ? 10 : i == 1 ? 100 : 1000;
		limit_broken = false;
		flying_most = 0;
		for (int id = 0; id < 600; id++)
			world.segments[id] = id % 50 == 0 ? 3 * limit : id % 3;
		ck_assert_int_eq(world_cycle(&report), QRET_DONE);
		ck_assert_int_eq(world_left(), 0);
		ck_assert(!limit_broken);
		/* and the pipeline was used */
		ck_assert_int_lt(report.round_trips, report.steps);
		world_end();
	}
}
END_TEST

/* L22, B19: a budget ends the cycle between batches, and says that work is left. */
START_TEST(runner_budget)
{
	world_begin(100, 1000);
	world.before = count_flying;
	limit = 1000;
	world_set("cycle_budget_ms", "2000");
	ck_assert_int_eq(world_cycle(&report), QRET_BUDGET);
	ck_assert_int_gt(report.segments_deleted, 0);
	ck_assert_int_gt(world_left(), 0);
	ck_assert_int_le(report.elapsed_us, 3000000);
	ck_assert_int_eq(script_sent("gate_release"), 1);
	world_end();
}
END_TEST

static const char *listed;

static const char *slow_to_list(struct script_call *call)
{
	if (strcmp(call->statement, "worklist_scan") != 0)
		return NULL;
	script_pass_ms(3000);
	return listed;
}

/* B19: finding the work may use a budget up, and one batch goes all the same, of whichever phase has any. */
START_TEST(runner_budget_that_discovery_uses_up)
{
	static const struct {
		const char *listed, *step;
	} lists[] = {
		{ NULL, "step_retention_v2" },
		{ "@1700000000000000 #1 #1 - - @3 -", "step_txns_v2" },
		{ "@1700000000000000 #1 #1 - - - @4", "step_max_wait_v2" },
		{ "@1700000000000000 #1 #1 - - - -", "metrics_purge" },
		{ "@1700000000000000 - - - - - -", "metrics_purge" },
	};

	for (size_t i = 0; i < COUNT_OF(lists); i++) {
		world_begin(100, 1000);
		world.before = slow_to_list;
		listed = lists[i].listed;
		world_set("cycle_budget_ms", "2000");
		ck_assert_int_eq(world_cycle(&report), QRET_BUDGET);
		ck_assert_int_eq(report.steps, 1);
		ck_assert_int_eq(script_sent(lists[i].step), 1);
		ck_assert_int_eq(script_sent("worklist_scan"), 1);
		world_end();
	}
}
END_TEST

static int pages;

/* Full pages of nothing, one after the other. */
static const char *endless_list(struct script_call *call)
{
	static char page[PAGE_ITEMS * 64];
	int length = 0;

	if (strcmp(call->statement, "worklist_scan") != 0)
		return NULL;
	script_pass_ms(300);
	for (int i = 0; i < PAGE_ITEMS; i++)
		length += snprintf(page + length, sizeof(page) - (size_t)length,
		                   "@1700000000000000 #%d #1 - - - -/", pages * PAGE_ITEMS + i + 1);
	page[length - 1] = '\0';
	pages++;
	return page;
}

/* Pages of which nothing is due have no step that would heed the budget. */
START_TEST(runner_budget_over_a_list_of_nothing)
{
	world_begin(1, 0);
	world.before = endless_list;
	pages = 0;
	world_set("cycle_budget_ms", "2000");
	ck_assert_int_eq(world_cycle(&report), QRET_BUDGET);
	ck_assert_int_eq(report.steps, 0);
	ck_assert_int_eq(pages, 7);
	world_end();
}
END_TEST

/* ---- Lanes ------------------------------------------------------------------------------------- */

static const char *slow_steps(struct script_call *call)
{
	if (strncmp(call->statement, "step_retention", 14) == 0)
		call->delay_ms = 10;
	return NULL;
}

START_TEST(runner_lanes_share_the_work)
{
	world_begin(300, 5);
	world.before = slow_steps;
	world_set("parallelism", "4");
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	ck_assert_int_eq(report.segments_deleted, 1500);
	ck_assert_int_eq(report.partitions, 300);
	ck_assert_int_eq(script_opened(), 4);
	/* one gate, and the phases that belong to one lane were run by one */
	ck_assert_int_eq(script_sent("gate_take"), 1);
	ck_assert_int_eq(script_sent("metrics_purge"), 5);
	world_end();
}
END_TEST

START_TEST(runner_lanes_only_where_there_is_work)
{
	world_begin(1, 5);
	world_set("parallelism", "16");
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	ck_assert_int_eq(script_opened(), 1);
	world_end();
}
END_TEST

static int die_on, die_after;
static int64_t unanswered; /* rows whose deletion was never told */

static const char *lose_a_lane(struct script_call *call)
{
	static struct {
		int64_t rows, until_us;
	} sent[256];
	int64_t rows, *left;

	if (strncmp(call->statement, "step_retention", 14) != 0)
		return NULL;
	call->delay_ms = 10;
	if (call->connection != die_on || die_after < 0)
		return NULL;
	rows = world_rows_of(call);
	left = &world.segments[world_partition_of(call) - 1];
	sent[die_after] = (typeof(sent[0])){ rows < *left ? rows : *left, script_now_us() + 10000 };
	if (die_after-- > 0)
		return NULL;
	/* The last one died before it did anything; those before it are done, and their answers under way. */
	for (int i = 1; i < (int)COUNT_OF(sent); i++) {
		if (sent[i].until_us > script_now_us())
			unanswered += sent[i].rows;
		sent[i].until_us = 0;
	}
	call->flags = SCRIPT_DIE;
	return "";
}

/* A lost lane's items are taken over, and what it had counted stays. */
START_TEST(runner_lost_lane_is_replaced_by_the_others)
{
	for (int lane = 2; lane <= 3; lane++) {
		for (int after = 0; after < 12; after++) {
			world_begin(100, 20);
			world.before = lose_a_lane;
			die_on = lane;
			die_after = after;
			unanswered = 0;
			world_set("parallelism", "3");
			ck_assert_int_eq(world_cycle(&report), QRET_DONE);
			ck_assert_int_eq(world_left(), 0);
			/* B70: what was not told is not counted; the audit rows in the database are the truth */
			ck_assert_int_eq(report.segments_deleted, 2000 - unanswered);
			ck_assert_int_eq(world_logged("event=lane_lost"), 1);
			world_end();
		}
	}
}
END_TEST

static const char *lose_the_last(struct script_call *call)
{
	if (strncmp(call->statement, "step_retention", 14) != 0)
		return NULL;
	/* lane 1 has long been idle when the other one dies with an item in its hands */
	call->delay_ms = call->connection == 2 ? 1000 : 5;
	if (call->connection == 2)
		call->flags = SCRIPT_DIE;
	return call->flags ? "" : NULL;
}

START_TEST(runner_lost_lane_wakes_an_idle_one)
{
	world_begin(400, 3);
	world.before = lose_the_last;
	world_set("parallelism", "2");
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	ck_assert_int_eq(world_left(), 0);
	world_end();
}
END_TEST

static const char *hold_the_second(struct script_call *call)
{
	if (strncmp(call->statement, "step_retention", 14) != 0)
		return NULL;
	call->delay_ms = call->connection == 2 ? SCRIPT_NEVER : 5;
	return NULL;
}

/* The same, found by time: lane 2 hangs until its deadline, long after lane 1 has nothing left. */
START_TEST(runner_hung_lane_is_given_up)
{
	world_begin(400, 3);
	world_set_silent();
	world.before = hold_the_second;
	world_set("parallelism", "2");
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	ck_assert_int_eq(world_logged("event=lane_lost"), 1);
	ck_assert_int_lt(report.elapsed_us, WORLD_SILENCE_US);
	/* what the server may have done on lane 2 was asked for again on lane 1 */
	ck_assert_int_eq(world_left(), 0);
	world_end();
}
END_TEST

START_TEST(runner_refused_lane_is_done_without)
{
	static const char *const behaviours[] = { NULL, "too many connections", "deaf" };

	world_begin(200, 5);
	world.before = slow_steps;
	script_connects(behaviours, COUNT_OF(behaviours));
	world_set("parallelism", "3");
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	ck_assert_int_eq(report.segments_deleted, 1000);
	ck_assert_int_ge(world_logged("event=lane_lost"), 1);
	world_end();
}
END_TEST

START_TEST(runner_lane_zero_lost_ends_the_cycle)
{
	world_begin(100, 20);
	world.before = lose_a_lane;
	die_on = 1;
	die_after = 3;
	unanswered = 0;
	world_set("parallelism", "3");
	ck_assert_int_eq(world_cycle(&report), QRET_ERR_CONNECTION);
	/* what the other lanes had in flight was finished and counted */
	ck_assert_int_eq(report.segments_deleted, world.deleted - unanswered);
	ck_assert_int_eq(script_sent("metrics_purge"), 0);
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	ck_assert_int_eq(world_left(), 0);
	world_end();
}
END_TEST

/* A lane that is still connecting when its phase is over must neither be waited for nor make the loop spin. */
START_TEST(runner_slow_lane_does_not_spin)
{
	static const char *const behaviours[] = { NULL, "deaf", "deaf" };
	int calls = 0, rc;

	world_begin(100, 1);
	world.before = slow_steps;
	script_connects(behaviours, COUNT_OF(behaviours));
	world_set("parallelism", "3");
	world_set("connect_timeout_ms", "5");
	ck_assert_int_eq(qret_cycle_begin(world.ctx), QRET_DONE);
	while ((rc = qret_cycle_process(world.ctx)) == QRET_MORE || rc == QRET_WAIT) {
		if (rc == QRET_WAIT)
			qret_wait(world.ctx);
		ck_assert_int_lt(++calls, 2000);
	}
	ck_assert_int_eq(rc, QRET_DONE);
	world_end();
}
END_TEST

int main(void)
{
	const TTest *tests[] = { runner_rows_in_flight_bounded,
		                 runner_budget,
		                 runner_budget_that_discovery_uses_up,
		                 runner_budget_over_a_list_of_nothing,
		                 runner_lanes_share_the_work,
		                 runner_lanes_only_where_there_is_work,
		                 runner_lost_lane_is_replaced_by_the_others,
		                 runner_lost_lane_wakes_an_idle_one,
		                 runner_hung_lane_is_given_up,
		                 runner_refused_lane_is_done_without,
		                 runner_lane_zero_lost_ends_the_cycle,
		                 runner_slow_lane_does_not_spin,
		                 NULL };

	return unit_run("lane", tests);
}
