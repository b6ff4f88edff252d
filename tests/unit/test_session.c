/* SPDX-License-Identifier: MIT */
/* One connection: opened, set up, driven without ever blocking, given up. B08, B31, B35, B68, B69. */
#include "script_world.h"

static struct qret_cycle_report report;

START_TEST(session_keywords)
{
	world_begin(1, 1);
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	ck_assert_str_eq(script_keyword(1, "host"), "server");
	ck_assert_str_eq(script_keyword(1, "client_encoding"), "UTF8");
	ck_assert_str_eq(script_keyword(1, "fallback_application_name"), "libqretention");
	ck_assert_str_eq(script_keyword(1, "tcp_user_timeout"), "30000");
	ck_assert_str_eq(script_keyword(1, "keepalives_idle"), "7");
	ck_assert_str_eq(script_keyword(1, "keepalives_count"), "3");
	world_end();
}
END_TEST

START_TEST(session_keywords_of_the_host_stay)
{
	world_begin(1, 1);
	ck_assert_int_eq(
		qret_connect(
			world.ctx,
			"host=server keepalives_idle=99 tcp_user_timeout=5 fallback_application_name=mine"),
		QRET_DONE);
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	ck_assert_str_eq(script_keyword(1, "keepalives_idle"), "99");
	ck_assert_str_eq(script_keyword(1, "tcp_user_timeout"), "5");
	ck_assert_str_eq(script_keyword(1, "fallback_application_name"), "mine");
	world_end();
	world_begin(1, 1);
	world_set("idle_limit_ms", "0");
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	ck_assert_str_eq(script_keyword(1, "keepalives_idle"), "");
	world_end();
}
END_TEST

/* A deaf first host costs its limit; the second is used. */
START_TEST(session_host_by_host)
{
	static const char *const behaviours[] = { "deaf", "refused", NULL };
	int64_t start_us;

	world_begin(1, 1);
	script_connects(behaviours, COUNT_OF(behaviours));
	ck_assert_int_eq(qret_connect(world.ctx, "host=a,b,c port=1,2,3"), QRET_DONE);
	world_set("connect_timeout_ms", "2000");
	start_us = qret_now_us();
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	ck_assert_int_eq(qret_now_us() - start_us, 2000000);
	ck_assert_str_eq(script_keyword(1, "host"), "a");
	ck_assert_str_eq(script_keyword(3, "host"), "c");
	ck_assert_str_eq(script_keyword(3, "port"), "3");
	world_end();
}
END_TEST

START_TEST(session_prefer_standby_makes_two_passes)
{
	static const char *const behaviours[] = { "is primary", "is primary", "refused", NULL };

	world_begin(1, 1);
	script_connects(behaviours, COUNT_OF(behaviours));
	ck_assert_int_eq(qret_connect(world.ctx, "host=a,b target_session_attrs=prefer-standby"),
	                 QRET_DONE);
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	ck_assert_str_eq(script_keyword(1, "target_session_attrs"), "standby");
	ck_assert_str_eq(script_keyword(2, "target_session_attrs"), "standby");
	ck_assert_str_eq(script_keyword(4, "target_session_attrs"), "any");
	ck_assert_str_eq(script_keyword(4, "host"), "b");
	world_end();
}
END_TEST

START_TEST(session_deaf_server_is_a_timeout)
{
	static const char *const behaviours[] = { "deaf" };
	int64_t start_us;

	world_begin(1, 1);
	script_connects(behaviours, COUNT_OF(behaviours));
	start_us = qret_now_us();
	ck_assert_int_eq(world_cycle(&report), QRET_ERR_TIMEOUT);
	ck_assert_int_eq(qret_now_us() - start_us, 10000000);
	ck_assert_int_eq(qret_error_is_retryable(world.ctx), 1);
	ck_assert_int_eq(script_open(), 0);
	world_end();
}
END_TEST

/* Output that does not fit the socket: the descriptor is polled for writing until it does. */
START_TEST(session_flush_stalls)
{
	struct qret_poll_fd fds[4];
	uint32_t count;
	int stalled = 0, before, rc;

	for (int stalls = 1; stalls < 40; stalls += 3) {
		world_begin(5, 30);
		script_knobs.flush_stalls = stalls;
		ck_assert_int_eq(qret_cycle_begin(world.ctx), QRET_DONE);
		while (before = script_knobs.flush_stalls,
		       (rc = qret_cycle_process(world.ctx)) == QRET_MORE || rc == QRET_WAIT) {
			if (rc == QRET_MORE)
				continue;
			ck_assert_int_eq(qret_poll_fds(world.ctx, fds, COUNT_OF(fds), &count),
			                 QRET_DONE);
			ck_assert_uint_eq(count, 2);
			if (world.ctx->lanes[0].session.state == SESSION_CONNECTING) {
				ck_assert_int_eq(qret_wait(world.ctx), QRET_DONE);
				continue;
			}
			ck_assert(fds[1].events & QRET_POLL_READ);
			if (script_knobs.flush_stalls > 0)
				stalled += fds[1].events & QRET_POLL_WRITE ? 1 : 0;
			else if (before == 0)
				ck_assert_int_eq(fds[1].events & QRET_POLL_WRITE, 0);
			ck_assert_int_eq(qret_wait(world.ctx), QRET_DONE);
		}
		ck_assert_int_eq(rc, QRET_DONE);
		ck_assert_int_eq(world_left(), 0);
		world_end();
	}
	ck_assert_int_gt(stalled, 10);
}
END_TEST

static const char *effect_on;
static unsigned effect;
static int32_t effect_delay_ms;

static const char *have_effect(struct script_call *call)
{
	if (strcmp(call->statement, effect_on) != 0)
		return NULL;
	call->flags = effect;
	call->delay_ms = effect_delay_ms;
	return effect & SCRIPT_TWICE ? "ERROR P0001 once and again" : NULL;
}

static const char *const every_statement[] = { "settings",       "facts",
	                                       "schema_version", "gate_take",
	                                       "worklist_scan",  "step_retention_v2",
	                                       "metrics_purge",  "gate_release" };

/* The whole cycle with this effect on each statement in turn; what is released late is a warning only. */
static void assert_each(unsigned flags, int32_t delay_ms, int code)
{
	for (size_t i = 0; i < COUNT_OF(every_statement); i++) {
		bool released = strcmp(every_statement[i], "gate_release") == 0;

		world_begin(3, 30);
		world.before = have_effect;
		effect_on = every_statement[i];
		effect = flags;
		effect_delay_ms = delay_ms;
		ck_assert_msg(world_cycle(&report) == (released ? QRET_DONE : code), "%s: %d, %s",
		              every_statement[i], report.outcome, qret_error_message(world.ctx));
		ck_assert_int_eq(world_logged("event=release_failed"), i >= 4);
		ck_assert_int_eq(script_open(), 0);
		if (!released) {
			ck_assert_int_eq(qret_error_is_retryable(world.ctx), 1);
			ck_assert_str_ne(qret_error_message(world.ctx), "");
		}
		world.before = NULL;
		ck_assert_int_eq(world_cycle(&report), QRET_DONE);
		ck_assert_int_eq(world_left(), 0);
		world_end();
	}
}

/* A server that hangs: within the statement limit and a second of grace the call is back, and the connection closed. */
START_TEST(session_hang_meets_deadline)
{
	int64_t start_us = qret_now_us();

	assert_each(0, SCRIPT_NEVER, QRET_ERR_TIMEOUT);
	ck_assert_int_le(qret_now_us() - start_us, 8 * 31000000LL);
	ck_assert_int_ge(qret_now_us() - start_us, 8 * 30000000LL);
}
END_TEST

/* B68: libpq that has nothing to say, for ever. */
START_TEST(session_endless_silence)
{
	assert_each(SCRIPT_SILENT, 0, QRET_ERR_CONNECTION);
}
END_TEST

/* And one that never stops. */
START_TEST(session_endless_chatter)
{
	assert_each(SCRIPT_CHATTER, 0, QRET_ERR_CONNECTION);
}
END_TEST

START_TEST(session_death_in_each_statement)
{
	assert_each(SCRIPT_DIE, 0, QRET_ERR_CONNECTION);
}
END_TEST

/* A pooler that tells two errors for one statement: the first counts, and the next statement gets its own answer. */
START_TEST(session_two_errors_for_one)
{
	world_begin(3, 30);
	world.before = have_effect;
	effect_on = "metrics_purge";
	effect = SCRIPT_TWICE;
	effect_delay_ms = 0;
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	ck_assert_int_eq(script_sent("metrics_purge"), 5);
	ck_assert_int_eq(world_left(), 0);
	ck_assert_int_eq(script_opened(), 1);
	effect_on = "facts";
	ck_assert_int_eq(world_cycle(&report), QRET_ERR_SQL);
	ck_assert_str_eq(qret_error_message(world.ctx), "once and again");
	effect_on = "step_retention_v2";
	world.segments[0] = world.segments[1] = 10;
	ck_assert_int_eq(world_cycle(&report), QRET_PARTIAL);
	ck_assert_int_eq(report.items_failed, 3);
	ck_assert_int_eq(script_opened(), 1);
	world_end();
}
END_TEST

/* Slow is not hung. */
START_TEST(session_slow_answers)
{
	for (size_t i = 0; i < COUNT_OF(every_statement); i++) {
		world_begin(3, 30);
		world.before = have_effect;
		effect_on = every_statement[i];
		effect = 0;
		effect_delay_ms = 29000;
		world_set("statement_timeout_ms", "30000");
		ck_assert_int_eq(world_cycle(&report), QRET_DONE);
		world_end();
	}
}
END_TEST

START_TEST(session_no_limit_waits)
{
	world_begin(1, 1);
	world.before = have_effect;
	effect_on = "facts";
	effect = 0;
	effect_delay_ms = 100000000;
	world_set("statement_timeout_ms", "0");
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	world_end();
}
END_TEST

/* B35: what the server says on the side goes to the log, on one line. */
START_TEST(session_notices)
{
	for (size_t i = 0; i < COUNT_OF(every_statement); i++) {
		world_begin(1, 1);
		world.before = have_effect;
		effect_on = every_statement[i];
		effect = SCRIPT_NOTICE;
		effect_delay_ms = 0;
		ck_assert_int_eq(world_cycle(&report), QRET_DONE);
		ck_assert_int_ge(
			world_logged(
				"event=notice severity=WARNING message=\"careful,\\nserver speaking\""),
			1);
		world_end();
	}
}
END_TEST

/* A borrowed connection that was lost is never reset: it is tainted, and says so until it is detached. */
START_TEST(session_borrowed_loss_taints)
{
	static const unsigned effects[] = { SCRIPT_DIE, SCRIPT_SILENT, SCRIPT_CHATTER, 0 };

	for (size_t i = 0; i < COUNT_OF(effects); i++) {
		int32_t tainted = 77;

		world_begin_attached(3, 30);
		world.before = have_effect;
		effect_on = "step_retention_v2";
		effect = effects[i];
		effect_delay_ms = effects[i] == 0 ? SCRIPT_NEVER : 0;
		ck_assert_int_eq(world_cycle(&report),
		                 effects[i] == 0 ? QRET_ERR_TIMEOUT : QRET_ERR_CONNECTION);
		ck_assert_int_eq(qret_error_is_retryable(world.ctx), 0);
		ck_assert_int_eq(world_cycle(&report), QRET_ERR_CONNECTION);
		ck_assert_contains(qret_error_hint(world.ctx), "detach");
		ck_assert_int_eq(qret_detach(world.ctx, &tainted), QRET_DONE);
		ck_assert_int_eq(tainted, 1);
		world.before = NULL;
		ck_assert_int_eq(qret_attach(world.ctx, script_host_connection()), QRET_DONE);
		ck_assert_int_eq(world_cycle(&report), QRET_DONE);
		ck_assert_int_eq(qret_detach(world.ctx, &tainted), QRET_DONE);
		ck_assert_int_eq(tainted, 0);
		world_end();
	}
}
END_TEST

/* An error inside the envelope of a borrowed connection ends its transaction: the next statement is not refused. */
START_TEST(session_borrowed_error_is_contained)
{
	int32_t tainted = 77;

	world_begin_attached(3, 30);
	world.before = have_effect;
	effect_on = "metrics_purge";
	effect = SCRIPT_TWICE;
	effect_delay_ms = 0;
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	ck_assert_int_eq(script_sent("metrics_purge"), 5);
	ck_assert_int_eq(script_sent("begin"), script_sent("commit"));
	ck_assert_int_eq(qret_detach(world.ctx, &tainted), QRET_DONE);
	ck_assert_int_eq(tainted, 0);
	world_end();
}
END_TEST

int main(void)
{
	const TTest *tests[] = { session_keywords,
		                 session_keywords_of_the_host_stay,
		                 session_host_by_host,
		                 session_prefer_standby_makes_two_passes,
		                 session_deaf_server_is_a_timeout,
		                 session_flush_stalls,
		                 session_hang_meets_deadline,
		                 session_endless_silence,
		                 session_endless_chatter,
		                 session_death_in_each_statement,
		                 session_two_errors_for_one,
		                 session_slow_answers,
		                 session_no_limit_waits,
		                 session_notices,
		                 session_borrowed_loss_taints,
		                 session_borrowed_error_is_contained,
		                 NULL };

	return unit_run("session", tests);
}
