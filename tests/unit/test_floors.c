/* SPDX-License-Identifier: MIT */
/* Discovery by floors as the library drives it: what is due is stepped, what cannot be is left out, and it ends. L17 to L19. */
#include "script_world.h"

#include <stdio.h>
#include <stdlib.h>

static struct qret_cycle_report report;

static void begin(int partitions, int64_t segments)
{
	world_begin(partitions, segments);
	world.floors = true;
}

START_TEST(floors_only_due_are_stepped)
{
	begin(2000, 0);
	for (int id = 0; id < 2000; id += 200)
		world.segments[id] = 30;
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	ck_assert_int_eq(world_left(), 0);
	ck_assert_int_eq(report.partitions, 10);
	ck_assert_int_eq(report.steps, 10 + 5);
	ck_assert_int_eq(script_sent("worklist_scan"), 0);
	world_end();
}
END_TEST

/* Nothing due: no step at all, and a handful of round trips however many partitions there are. */
START_TEST(floors_idle_cycle_is_short)
{
	begin(2900, 0);
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	ck_assert_int_eq(report.partitions, 0);
	ck_assert_int_le(report.round_trips, 15);
	world_end();
}
END_TEST

START_TEST(floors_many_pages)
{
	begin(2900, 3);
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	ck_assert_int_eq(world_left(), 0);
	ck_assert_int_eq(report.partitions, 2900);
	world_end();
}
END_TEST

static const char *fail_alternating(struct script_call *call)
{
	if (strncmp(call->statement, "step_retention", 14) != 0)
		return NULL;
	return world_partition_of(call) % 2 ? "ERROR P0001 no" : "ERROR XX000 no";
}

/* What fails stays due: it is left out for the rest of the cycle, however many there are, and the cycle ends. */
START_TEST(floors_failing_partitions_end)
{
	static const int counts[] = { 10, 990, 1000, 1010, 2900 };

	for (size_t i = 0; i < COUNT_OF(counts); i++) {
		begin(counts[i], 3);
		world.before = fail_alternating;
		for (int cycle = 0; cycle < 4; cycle++) {
			ck_assert_int_eq(world_cycle(&report), QRET_PARTIAL);
			ck_assert_int_gt(report.items_failed, 0);
			ck_assert_int_le(report.steps, counts[i] + 5);
			script_pass_ms(5000);
		}
		world.before = NULL;
		script_pass_ms(400000);
		ck_assert_int_eq(world_cycle(&report), QRET_DONE);
		ck_assert_int_eq(world_left(), 0);
		world_end();
	}
}
END_TEST

static const char *answer_nothing(struct script_call *call)
{
	return strncmp(call->statement, "step_retention", 14) == 0 ? "0 0 0 t 100 f" : NULL;
}

/* Listed as due, and yet the steps find nothing: settled once, not stepped again and again. */
START_TEST(floors_wrong_floors_end)
{
	static const int counts[] = { 10, 1010, 2900 };

	for (size_t i = 0; i < COUNT_OF(counts); i++) {
		begin(counts[i], 3);
		world.before = answer_nothing;
		world_cycle(&report);
		ck_assert_int_le(report.steps, 2 * counts[i] + 5);
		ck_assert_int_gt(script_sent("floors_refresh"), 0);
		world_end();
	}
}
END_TEST

static int asked_of_pinned, asked_of_walk;

/* Ten partitions are as many as the server has time for. */
static const char *ten_at_most(struct script_call *call)
{
	bool pinned = strcmp(call->statement, "floors_pinned") == 0;
	int rows;

	if (!pinned && strcmp(call->statement, "floors_walk") != 0)
		return NULL;
	rows = atoi(strrchr(call->parameters, ' ') + 1);
	*(pinned ? &asked_of_pinned : &asked_of_walk) = rows;
	return rows > 10 ? "ERROR 57014 too slow" : NULL;
}

/* B04: what the rounds look at shrinks until it fits, and the next cycle tries no more than twice that. */
START_TEST(floors_rounds_shrink)
{
	begin(10, 3);
	world.before = ten_at_most;
	for (int cycle = 0; cycle < 3; cycle++) {
		ck_assert_int_eq(world_cycle(&report), QRET_DONE);
		ck_assert_int_le(asked_of_pinned, 10);
		ck_assert_int_le(asked_of_walk, 10);
		ck_assert_int_le(script_sent("floors_pinned"), 12 + 2 * cycle);
		script_pass_ms(5000);
	}
	ck_assert_int_eq(world_left(), 0);
	world_end();
}
END_TEST

static const char *always_too_slow(struct script_call *call)
{
	return strncmp(call->statement, "floors_", 7) == 0 ? "ERROR 57014 too slow" : NULL;
}

/* At one partition it is given up, for this cycle, and said. */
START_TEST(floors_that_never_fit_are_told)
{
	begin(10, 3);
	world.before = always_too_slow;
	ck_assert_int_eq(world_cycle(&report), QRET_PARTIAL);
	ck_assert_int_eq(report.items_failed, 2);
	ck_assert_int_le(report.round_trips, 50);
	ck_assert_contains(world.log, "event=item_failed phase=floors sqlstate=57014");
	ck_assert_int_eq(world_left(), 0);
	world_end();
}
END_TEST

static const char *look_failure;
static int asked_first, looks;

/* The look at pinned partitions fails at any that is more than one. */
static const char *one_at_most(struct script_call *call)
{
	int rows;

	if (strcmp(call->statement, "floors_pinned") != 0)
		return NULL;
	rows = atoi(strrchr(call->parameters, ' ') + 1);
	asked_first = looks++ == 0 ? rows : asked_first;
	return rows > 1 ? look_failure : NULL;
}

/* A smaller look helps against a timeout, and past one partition that fails; where a lock is held, none. */
START_TEST(floors_halving_is_for_what_it_helps)
{
	static const struct {
		const char *failure;
		bool halves;
	} rows[] = {
		{ "ERROR 57014 too slow", true },  { "ERROR P0001 a trigger", true },
		{ "ERROR 55P03 locked", false },   { "ERROR 55006 in use", false },
		{ "ERROR 40P01 deadlock", false }, { "ERROR 40001 serialization", false },
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		begin(10, 3);
		world.before = one_at_most;
		look_failure = rows[i].failure;
		for (int cycle = 0; cycle < 2; cycle++) {
			looks = 0;
			ck_assert_int_eq(world_cycle(&report),
			                 rows[i].halves ? QRET_DONE : QRET_PARTIAL);
			/* Of 10000 it takes 13 halvings to one; the next cycle begins with two. */
			ck_assert_int_eq(looks, !rows[i].halves ? 1 : cycle == 0 ? 14 : 2);
			ck_assert_int_eq(asked_first, rows[i].halves && cycle == 1 ? 2 : 10000);
			ck_assert_int_eq(report.items_failed, !rows[i].halves);
			script_pass_ms(5000);
		}
		ck_assert_int_eq(world_left(), 0);
		world_end();
	}
}
END_TEST

static int settled[64], settles;

/* One settling is too slow, for whatever reason, and those after it are not. */
static const char *once_too_slow(struct script_call *call)
{
	if (strcmp(call->statement, "floors_refresh") != 0)
		return answer_nothing(call);
	ck_assert_int_lt(settles, 64);
	settled[settles] = 0;
	for (const char *at = call->parameters; (at = strchr(at, '#')) != NULL; at++)
		settled[settles]++;
	return settles++ == 0 ? "ERROR 57014 too slow" : NULL;
}

/* What was made smaller grows back as it succeeds, within the cycle. */
START_TEST(floors_settling_grows_back)
{
	static const int expected[] = { 256, 128, 256, 256 };

	begin(1000, 3);
	world.before = once_too_slow;
	settles = 0;
	world_cycle(&report);
	ck_assert_int_ge(settles, 5);
	for (size_t i = 0; i < COUNT_OF(expected); i++)
		ck_assert_int_eq(settled[i], expected[i]);
	world_end();
}
END_TEST

static const char *round_name;
static int round_starts, held_looks;

/* A host holds the partition behind #5, and every round that comes to it fails. */
static const char *held_partition(struct script_call *call)
{
	if (strcmp(call->statement, round_name) != 0)
		return NULL;
	if (strstr(call->parameters, " #5 ") != NULL) {
		held_looks++;
		return "ERROR 55P03 locked";
	}
	round_starts++;
	return strcmp(round_name, "floors_walk") == 0 ? "- - - - f f 8 #5 0" : "- 600 #5";
}

/* The next cycle's share begins anywhere else, so that what lies behind it is looked at too. */
START_TEST(floors_round_goes_on_behind_what_is_held)
{
	static const char *const names[] = { "floors_walk", "floors_pinned" };

	for (size_t i = 0; i < COUNT_OF(names); i++) {
		begin(10, 3);
		world.before = held_partition;
		round_name = names[i];
		round_starts = held_looks = 0;
		for (int cycle = 1; cycle <= 5; cycle++) {
			ck_assert_int_eq(world_cycle(&report), QRET_PARTIAL);
			ck_assert_int_eq(round_starts, cycle);
			ck_assert_int_eq(held_looks, cycle);
			script_pass_ms(5000);
		}
		world_end();
	}
}
END_TEST

int main(void)
{
	const TTest *tests[] = { floors_only_due_are_stepped,
		                 floors_idle_cycle_is_short,
		                 floors_many_pages,
		                 floors_failing_partitions_end,
		                 floors_wrong_floors_end,
		                 floors_rounds_shrink,
		                 floors_that_never_fit_are_told,
		                 floors_halving_is_for_what_it_helps,
		                 floors_settling_grows_back,
		                 floors_round_goes_on_behind_what_is_held,
		                 NULL };

	return unit_run("floors", tests);
}
