/* SPDX-License-Identifier: MIT */
/* The prune of an outbox in a cycle: its arms, cursors, hints, limit, sub-cadence, a busy host. E4, E6, E7, B06. */
#include "script_outbox.h"

#include <string.h>

static struct qret_cycle_report report;

/* One after the other, at one clock, with the default window in seconds. */
START_TEST(prune_arms_in_order)
{
	outbox_begin();
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	ck_assert_str_eq(
		outbox_arms,
		"'succeeded @1700000000000000 7776000 5000 - 500|'settled @1700000000000000 7776000 5000 - 500|"
		"'own_window @1700000000000000 7776000 5000 - 500|'default_window @1700000000000000 7776000 5000 - 500|");
	ck_assert_int_eq(report.clock_us, WORLD_CLOCK_US);
	ck_assert_int_eq(script_sent("worklist_scan"), 0);
	world_end();
}
END_TEST

/* An arm is drained before the next, its cursor carried from step to step and dropped at its end. */
START_TEST(prune_cursor_is_carried)
{
	outbox_begin();
	outbox_answer = "3 9 1 0 2 'c1 f 100 0 -";
	outbox_answers = 1;
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	ck_assert_contains(
		outbox_arms,
		"'succeeded @1700000000000000 7776000 5000 - 500|'succeeded @1700000000000000 7776000 5000 'c1 500|'settled");
	ck_assert_contains(outbox_arms, "'settled @1700000000000000 7776000 5000 - 500|");
	ck_assert_int_eq(report.events_deleted, 3);
	ck_assert_int_eq(report.events_succeeded, 3);
	ck_assert_int_eq(report.deliveries_deleted, 9);
	ck_assert_int_eq(report.items_locked, 1);
	ck_assert_int_eq(report.rows_poison, 2);
	world_end();
}
END_TEST

/* A step that deleted nothing but moved its cursor goes on; one whose cursor stands still is over. */
START_TEST(prune_cursor_that_stands_still)
{
	outbox_begin();
	outbox_answer = "0 0 5 0 0 'same f 100 0 -";
	outbox_answers = 1000;
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	ck_assert_int_eq(script_sent("event_prune_step"), 8);
	world_end();
}
END_TEST

/* First one interval after the start, then once an interval; a failure waits as long as a success. */
START_TEST(prune_sub_cadence)
{
	outbox_begin();
	world_set("event_prune_interval_ms", "60000");
	for (int i = 0; i < 12; i++) {
		ck_assert_int_eq(world_cycle(&report), QRET_DONE);
		script_pass_ms(5000);
	}
	ck_assert_int_eq(script_sent("event_prune_step"), 0);
	for (int i = 0; i < 12; i++) {
		world_cycle(&report);
		script_pass_ms(5000);
	}
	ck_assert_int_eq(script_sent("event_prune_step"), 4);
	world_end();
}
END_TEST

/* B06: a busy host defers it, but not for ever; overdue, it gets one step a cycle. */
START_TEST(prune_beside_a_busy_host)
{
	int before = 0;

	outbox_begin();
	outbox_busy();
	outbox_answer = "5 5 0 0 0 - f 100 0 -";
	outbox_answers = 1000;
	for (int i = 0; i < 10; i++) {
		ck_assert_int_eq(world_cycle(&report), QRET_DONE);
		script_pass_ms(60000);
	}
	ck_assert_int_eq(script_sent("event_prune_step"), 0);
	script_pass_ms(60000);
	for (int i = 0; i < 5; i++) {
		ck_assert_int_eq(world_cycle(&report), QRET_DONE);
		ck_assert_int_eq(script_sent("event_prune_step"), ++before);
		script_pass_ms(5000);
	}
	ck_assert_int_eq(qret_set_busy(world.ctx, 0), QRET_DONE);
	outbox_answers = 3;
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	ck_assert_int_ge(script_sent("event_prune_step"), before + 4);
	world_end();
}
END_TEST

START_TEST(prune_defers_for_ever_if_told)
{
	outbox_begin();
	world_set("event_prune_interval_ms", "1000");
	world_set("event_prune_max_defer_ms", "0");
	qret_set_busy(world.ctx, 1);
	for (int i = 0; i < 50; i++) {
		ck_assert_int_eq(world_cycle(&report), QRET_DONE);
		script_pass_ms(600000);
	}
	ck_assert_int_eq(script_sent("event_prune_step"), 0);
	world_end();
}
END_TEST

/* Events are what it bounds, not rows: the batches stay as they are. */
START_TEST(prune_limit_is_a_budget)
{
	outbox_begin();
	world_set("event_prune_limit", "7");
	outbox_answer = "5 5 0 0 0 - f 100 0 -";
	outbox_answers = 1000;
	ck_assert_int_eq(world_cycle(&report), QRET_BUDGET);
	ck_assert_int_eq(script_sent("event_prune_step"), 2);
	/* the second step may take no more events than are left */
	ck_assert_contains(outbox_arms, " 7776000 5000 - 7|");
	ck_assert_contains(outbox_arms, " 7776000 5000 - 2|");
	/* and the next cycle has its own seven */
	outbox_arms[0] = '\0';
	ck_assert_int_eq(world_cycle(&report), QRET_BUDGET);
	ck_assert_contains(outbox_arms, " 7776000 5000 - 7|");
	world_end();
}
END_TEST

/* As many as there were: the arms that are left are looked at, and the cycle is done. */
START_TEST(prune_limit_that_was_enough)
{
	outbox_begin();
	world_set("event_prune_limit", "5");
	outbox_answer = "5 5 0 0 0 - t 100 0 -";
	outbox_answers = 1;
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	ck_assert_int_eq(script_sent("event_prune_step"), 4);
	ck_assert_contains(outbox_arms, "'settled @1700000000000000 7776000 5000 - 0|");
	ck_assert_contains(outbox_arms, "'default_window @1700000000000000 7776000 5000 - 0|");
	/* One that finds something says so, and nothing more is asked. */
	outbox_answers = 2;
	outbox_answer = "5 5 0 0 0 'c1 f 100 0 -";
	ck_assert_int_eq(world_cycle(&report), QRET_BUDGET);
	ck_assert_int_eq(script_sent("event_prune_step"), 5);
	world_end();
}
END_TEST

/*
 * Where looks from the start take long, each arm begins where its last run left nothing; the first
 * run, and every tenth, at the start.
 */
START_TEST(prune_hint)
{
	static const char start[] = "'settled @1700000000000000 7776000 5000 - 500|";
	static const char hint[] = "'settled @1700000000000000 7776000 5000 'low 500|";

	outbox_begin();
	outbox_answers = 1000;
	for (int run = 0; run < 40; run++) {
		/* The first run's time says nothing; in the end the entries are cleaned away. */
		bool from_start = run % 10 == 0 || run == 1 || run > 30;

		outbox_arms[0] = '\0';
		outbox_answer = from_start && run < 30 ? "0 0 0 0 0 'low t 60000 0 -"
		                                       : "0 0 0 0 0 'low t 100 0 -";
		ck_assert_int_eq(world_cycle(&report), QRET_DONE);
		ck_assert_contains(outbox_arms, from_start ? start : hint);
	}
	world_end();
}
END_TEST

/* A whole prune leaves nothing for a later round to go on with: that begins with the first arm. */
START_TEST(prune_round_after_a_whole_one)
{
	outbox_begin();
	outbox_busy();
	world_cycle(&report);
	script_pass_ms(700000);
	outbox_answer = "5 5 0 0 0 - t 100 0 -";
	outbox_answers = 1;
	world_cycle(&report);
	ck_assert_int_eq(report.events_succeeded, 5);
	qret_set_busy(world.ctx, 0);
	world_cycle(&report);
	ck_assert_contains(outbox_arms, "'default_window");
	qret_set_busy(world.ctx, 1);
	script_pass_ms(700000);
	outbox_arms[0] = '\0';
	world_cycle(&report);
	ck_assert_contains(outbox_arms, "'succeeded");
	world_end();
}
END_TEST

static const char *stopping_outbox(struct script_call *call)
{
	if (strcmp(call->statement, "event_prune_step") == 0)
		qret_stop(world.ctx);
	return outbox_step(call);
}

/* A stop waits for the batch that is at work, and for no other. */
START_TEST(prune_stops_between_batches)
{
	outbox_begin();
	world.before = stopping_outbox;
	outbox_answer = "5 5 0 0 0 'c1 f 100 0 -";
	outbox_answers = 1000;
	ck_assert_int_eq(world_cycle(&report), QRET_STOPPED);
	ck_assert_int_eq(script_sent("event_prune_step"), 1);
	ck_assert_int_eq(report.events_deleted, 5);
	world_end();
}
END_TEST

START_TEST(prune_switched_off)
{
	outbox_begin();
	world_set("event_prune", "off");
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	ck_assert_int_eq(script_sent("event_prune_step"), 0);
	world_end();
}
END_TEST

int main(void)
{
	const TTest *tests[] = { prune_arms_in_order,
		                 prune_cursor_is_carried,
		                 prune_cursor_that_stands_still,
		                 prune_sub_cadence,
		                 prune_beside_a_busy_host,
		                 prune_defers_for_ever_if_told,
		                 prune_limit_is_a_budget,
		                 prune_limit_that_was_enough,
		                 prune_hint,
		                 prune_round_after_a_whole_one,
		                 prune_stops_between_batches,
		                 prune_switched_off,
		                 NULL };

	return unit_run("prune", tests);
}
