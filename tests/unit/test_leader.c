/* SPDX-License-Identifier: MIT */
/* The lease gate on the wire: claim, barrier, fence in every step, renewal, release. L16, B01, B10, B37. */
#include "script_world.h"

#include <stdio.h>

static struct qret_cycle_report report;

static const char *claim, *fence, *renewal, *barrier;
static int fences, steps;
static char claimed_with[128], released_with[64];

/* Facts with the lease installed, and the lease's statements as the test wants them. */
static const char *lease_server(struct script_call *call)
{
	if (strcmp(call->statement, "facts") == 0) {
		static char facts[256];
		size_t at = 0;

		snprintf(facts, sizeof(facts), "%s", world_facts(true));
		for (int fact = -1; fact < FACT_LEASE; fact++)
			at += strcspn(facts + at, " ") + 1;
		facts[at] = 't';
		return facts;
	}
	if (strcmp(call->statement, "lease_claim") == 0) {
		snprintf(claimed_with, sizeof(claimed_with), "%s", call->parameters);
		return claim;
	}
	if (strcmp(call->statement, "lease_release") == 0) {
		snprintf(released_with, sizeof(released_with), "%s", call->parameters);
		return "t";
	}
	if (strcmp(call->statement, "lease_fence") == 0) {
		fences++;
		ck_assert_str_eq(call->parameters, "42 737001");
		return fence;
	}
	if (strncmp(call->statement, "step", 4) == 0)
		steps++;
	if (strcmp(call->statement, "lease_renew") == 0)
		return renewal;
	return strcmp(call->statement, "lease_barrier") == 0 ? barrier : NULL;
}

static void begin(const char *claim_answer)
{
	world_begin(20, 30);
	world_set("gate", "lease");
	world.before = lease_server;
	claim = claim_answer;
	fence = "t";
	renewal = "t";
	barrier = "t";
	fences = steps = 0;
	claimed_with[0] = released_with[0] = '\0';
}

START_TEST(lease_fences_every_step)
{
	begin("'granted 42 f 0");
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	ck_assert_int_eq(world_left(), 0);
	ck_assert_int_ge(fences, steps);
	ck_assert_contains(claimed_with, " 5000 5000 737001");
	ck_assert_str_eq(released_with, "42 f t");
	ck_assert_int_eq(script_sent("gate_take") + script_sent("gate_release"), 0);
	ck_assert_int_eq(script_sent("lease_barrier"), 0);
	world_end();
}
END_TEST

START_TEST(lease_barrier_after_takeover)
{
	begin("'granted 42 t 0");
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	ck_assert_int_eq(script_sent("lease_barrier"), 1);
	ck_assert_int_eq(world_left(), 0);
	world_end();
}
END_TEST

/* The earlier leader's steps are still under way: the claim is given back, nothing is swept. */
START_TEST(lease_barrier_not_passed)
{
	begin("'granted 42 t 0");
	barrier = "ERROR 55P03 locked";
	ck_assert_int_eq(world_cycle(&report), QRET_BUSY);
	ck_assert_int_eq(steps, 0);
	ck_assert_str_eq(released_with, "42 t f");
	world_end();
}
END_TEST

/* Not due yet, held by another, paused: skipped. The lease says when to look again. */
START_TEST(lease_not_granted)
{
	int64_t now_us;

	begin("'held 41 f 1200");
	now_us = qret_now_us();
	ck_assert_int_eq(world_cycle(&report), QRET_BUSY);
	ck_assert_int_eq(steps, 0);
	ck_assert_str_eq(released_with, "");
	ck_assert_int_ge(qret_next_cycle_us(world.ctx) - now_us, 1200000);
	ck_assert_int_lt(qret_next_cycle_us(world.ctx) - now_us, 1500000);
	claim = "'paused 41 f 0";
	ck_assert_int_eq(world_cycle(&report), QRET_PAUSED);
	world_end();
}
END_TEST

/* A fence that no longer holds: leader lost, and nothing more is sent. */
START_TEST(lease_fence_lost)
{
	begin("'granted 42 f 0");
	fence = "ERROR QR002 taken over";
	ck_assert_int_eq(world_cycle(&report), QRET_ERR_LEADER_LOST);
	ck_assert_int_eq(world.deleted, 0);
	ck_assert_int_eq(script_sent("metrics_purge"), 0);
	ck_assert_int_eq(qret_error_is_retryable(world.ctx), 1);
	ck_assert_int_eq(world_logged("event=leader_lost"), 1);
	/* What is lost is not given back, so there is no trouble with it to be told. */
	ck_assert_str_eq(released_with, "");
	ck_assert_int_eq(world_logged("event=release_failed"), 0);
	world_end();
}
END_TEST

static const char *slow_lease_server(struct script_call *call)
{
	const char *answer = lease_server(call);

	if (strncmp(call->statement, "step", 4) == 0)
		call->delay_ms = 700;
	return answer;
}

/* A cycle that outlasts its lease renews it between steps; a renewal that is refused ends it. */
START_TEST(lease_renewed_in_long_cycle)
{
	begin("'granted 42 f 0");
	world.before = slow_lease_server;
	world.segments[0] = 3000;
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	ck_assert_int_ge(script_sent("lease_renew"), 2);
	ck_assert_int_ge(script_sent("lease_renew"), (int)(report.elapsed_us / 2500000));
	world_end();
	begin("'granted 42 f 0");
	world.before = slow_lease_server;
	world.segments[0] = 3000;
	renewal = "f";
	ck_assert_int_eq(world_cycle(&report), QRET_ERR_LEADER_LOST);
	ck_assert_int_gt(world_left(), 0);
	world_end();
}
END_TEST

static int walks_left;

static const char *slow_walk_server(struct script_call *call)
{
	if (strcmp(call->statement, "floors_walk") != 0)
		return lease_server(call);
	call->delay_ms = 1500;
	return walks_left-- > 0 ? "- - - - f f 0 #5 0" : "- - - - f f 0 - 0";
}

/* What comes before the steps is renewed through as well; nothing more is sent where the lease is lost. */
START_TEST(lease_renewed_before_the_steps)
{
	static const char *const renewals[] = { "t", "f", "ERROR 55P03 locked",
		                                "FATAL 57P01 shutting down" };
	static const int outcomes[] = { QRET_DONE, QRET_ERR_LEADER_LOST, QRET_DONE,
		                        QRET_ERR_CONNECTION };

	for (size_t i = 0; i < COUNT_OF(renewals); i++) {
		begin("'granted 42 f 0");
		world.floors = true;
		world.before = slow_walk_server;
		walks_left = 8;
		renewal = renewals[i];
		ck_assert_int_eq(world_cycle(&report), outcomes[i]);
		if (outcomes[i] == QRET_DONE) {
			ck_assert_int_ge(script_sent("lease_renew"), 5);
			ck_assert_int_eq(world_left(), 0);
		} else {
			ck_assert_int_le(script_sent("floors_walk"), 3);
			ck_assert_int_eq(steps, 0);
		}
		world_end();
	}
}
END_TEST

/* A stop in the middle of such a renewal: it is waited for, and the lease goes to whoever comes first. */
static void stop_asleep(void)
{
	qret_stop(world.ctx);
}

static const char *slow_renewal_server(struct script_call *call)
{
	const char *answer = slow_walk_server(call);

	if (strcmp(call->statement, "lease_renew") == 0) {
		call->delay_ms = 300;
		script_knobs.on_sleep = stop_asleep;
	}
	return answer;
}

START_TEST(lease_stop_while_it_is_renewed)
{
	begin("'granted 42 f 0");
	world.floors = true;
	world.before = slow_renewal_server;
	walks_left = 8;
	ck_assert_int_eq(world_cycle(&report), QRET_STOPPED);
	ck_assert_int_eq(script_sent("lease_renew"), 1);
	ck_assert_str_eq(released_with, "42 t t");
	qret_resume(world.ctx);
	world.before = lease_server;
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	world_end();
}
END_TEST

/* A stop hands over at once: the release says that the next cycle is anybody's. */
static void stop(void)
{
	qret_stop(world.ctx);
}

START_TEST(lease_stop_hands_over)
{
	begin("'granted 42 f 0");
	world.before = slow_lease_server;
	script_knobs.stop = stop;
	script_knobs.stop_at = 120;
	ck_assert_int_eq(world_cycle(&report), QRET_STOPPED);
	ck_assert_str_eq(released_with, "42 t t");
	world_end();
}
END_TEST

/* By hand: steps need the lease. */
START_TEST(lease_by_hand)
{
	struct qret_step_result result = { .size = sizeof(result) };

	begin("'granted 42 f 0");
	ck_assert_int_eq(qret_step(world.ctx, QRET_PHASE_METRICS_PURGE, NULL, &result),
	                 QRET_ERR_STATE);
	ck_assert_int_eq(qret_gate_take(world.ctx), QRET_DONE);
	ck_assert_int_eq(qret_step(world.ctx, QRET_PHASE_METRICS_PURGE, NULL, &result), QRET_DONE);
	ck_assert_int_ge(fences, 1);
	ck_assert_int_eq(qret_gate_release(world.ctx), QRET_DONE);
	ck_assert_str_eq(released_with, "42 f t");
	ck_assert_int_eq(qret_step(world.ctx, QRET_PHASE_METRICS_PURGE, NULL, &result),
	                 QRET_ERR_STATE);
	/* Lost, it is not held any more, and may be taken again; given up by a stop, it is anybody's. */
	ck_assert_int_eq(qret_gate_take(world.ctx), QRET_DONE);
	fence = "ERROR QR002 taken over";
	ck_assert_int_eq(qret_step(world.ctx, QRET_PHASE_METRICS_PURGE, NULL, &result),
	                 QRET_ERR_LEADER_LOST);
	ck_assert_int_eq(qret_gate_take(world.ctx), QRET_DONE);
	qret_stop(world.ctx);
	ck_assert_int_eq(qret_gate_release(world.ctx), QRET_DONE);
	ck_assert_str_eq(released_with, "42 t t");
	world_end();
}
END_TEST

/* A session lock cannot be right behind a transaction pooler: refused, with the way out. */
START_TEST(lease_or_none_behind_a_pooler)
{
	world_begin(1, 5);
	world_set("pooler", "transaction");
	ck_assert_int_eq(world_cycle(&report), QRET_ERR_OPTION);
	ck_assert_contains(qret_error_hint(world.ctx), "lease");
	ck_assert_int_eq(script_opened(), 0);
	world_set("gate", "none");
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	/* nothing of the session's: settings travel inside each transaction */
	ck_assert_int_eq(script_sent("begin"), script_sent("settings"));
	ck_assert_int_eq(world_left(), 0);
	world_end();
}
END_TEST

static int64_t renewed_us, longest_gap_us;
static int long_steps;

/* The first step of the second lane takes longer than a page is fresh. */
static const char *second_lane_hangs(struct script_call *call)
{
	const char *answer = lease_server(call);
	int64_t now_us = script_now_us();

	if (strncmp(call->statement, "step", 4) == 0)
		call->delay_ms = call->connection == 2 && long_steps++ == 0 ? 100000 : 10;
	if (strcmp(call->statement, "lease_renew") == 0 ||
	    strcmp(call->statement, "lease_claim") == 0) {
		if (renewed_us != 0 && now_us - renewed_us > longest_gap_us)
			longest_gap_us = now_us - renewed_us;
		renewed_us = now_us;
	}
	return answer;
}

/* A page that has grown old is read again when every lane is free: until then the lease is kept. */
START_TEST(lease_renewed_while_a_stale_page_waits)
{
	begin("'granted 42 f 0");
	world.before = second_lane_hangs;
	world_set("parallelism", "2");
	world_set("statement_timeout_ms", "200000");
	world_set("idle_limit_ms", "300000");
	renewed_us = longest_gap_us = long_steps = 0;
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	ck_assert_int_ge(report.elapsed_us, 100000000);
	ck_assert_int_eq(script_sent("worklist_by_id"), 1);
	/* And from the last one to the next claim, which follows it at once. */
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	ck_assert_int_lt(longest_gap_us, 5000000);
	ck_assert_int_eq(world_left(), 0);
	world_end();
}
END_TEST

int main(void)
{
	const TTest *tests[] = { lease_fences_every_step,
		                 lease_barrier_after_takeover,
		                 lease_barrier_not_passed,
		                 lease_not_granted,
		                 lease_fence_lost,
		                 lease_renewed_in_long_cycle,
		                 lease_renewed_before_the_steps,
		                 lease_renewed_while_a_stale_page_waits,
		                 lease_stop_while_it_is_renewed,
		                 lease_stop_hands_over,
		                 lease_by_hand,
		                 lease_or_none_behind_a_pooler,
		                 NULL };

	return unit_run("leader", tests);
}
