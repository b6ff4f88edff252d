/* SPDX-License-Identifier: MIT */
/* What a cycle comes to: its outcome, what it leaves behind, the report and the log, when the next is due. L16, L22. */
#include "script_world.h"

#include <stdio.h>

static struct qret_cycle_report report;

/* Busy is an outcome: nothing is swept, nothing released, nothing said above debug. */
START_TEST(finish_gate_busy)
{
	const struct script_entry entries[] = {
		{ .statement = "settings", .answer = "10" },
		{ .statement = "facts", .answer = WORLD_FACTS_V1 },
		{ .statement = "schema_version", .answer = "1" },
		{ .statement = "gate_take", .answer = "f" },
	};

	world_begin_scripted(entries, COUNT_OF(entries));
	ck_assert_int_eq(world_cycle(&report), QRET_BUSY);
	ck_assert_str_eq(world.log, "event=busy\n");
	ck_assert_str_eq(qret_error_message(world.ctx), "");
	world_end();
}
END_TEST

/* A release that the server does not confirm: the session goes, so that the lock goes; the cycle stays good. */
static void release_unconfirmed(const char *answer)
{
	const struct script_entry entries[] = {
		{ .statement = "settings", .answer = "10" },
		{ .statement = "facts", .answer = WORLD_FACTS_V1 },
		{ .statement = "schema_version", .answer = "1" },
		{ .statement = "gate_take", .answer = "t" },
		{ .statement = "worklist_scan", .answer = "@1700000000000000 - - - - - -" },
		{ .statement = "metrics_purge", .answer = "0 1" },
		{ .statement = "metrics_purge", .answer = "0 1" },
		{ .statement = "metrics_purge", .answer = "0 1" },
		{ .statement = "metrics_purge", .answer = "0 1" },
		{ .statement = "metrics_purge", .answer = "0 1" },
		{ .statement = "gate_release", .answer = answer },
	};

	world_begin_scripted(entries, COUNT_OF(entries));
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	ck_assert_int_eq(script_open(), 0);
	ck_assert_int_eq(world_logged("event=release_failed"), 1);
	world_end();
}

START_TEST(finish_release_unconfirmed)
{
	release_unconfirmed("f");
	release_unconfirmed("-");
	release_unconfirmed("");
	release_unconfirmed("ERROR 57014 canceled");
	release_unconfirmed("FATAL 57P01 shutting down");
}
END_TEST

START_TEST(finish_standby)
{
	static const char standby[] = "@1700000000000000 t t f t f t t t t f f f f f f - - -";
	const struct script_entry entries[] = {
		{ .statement = "settings", .answer = "10" },
		{ .statement = "facts", .answer = standby },
		{ .statement = "facts", .answer = standby },
		{ .statement = "facts", .answer = WORLD_FACTS_V1 },
		{ .statement = "schema_version", .answer = "1" },
		{ .statement = "gate_take", .answer = "f" },
		{ .statement = "facts", .answer = standby },
	};

	world_begin_scripted(entries, COUNT_OF(entries));
	ck_assert_int_eq(world_cycle(&report), QRET_STANDBY);
	ck_assert_int_eq(world_cycle(&report), QRET_STANDBY);
	/* once, until that changes */
	ck_assert_int_eq(world_logged("event=standby"), 1);
	ck_assert_int_eq(world_cycle(&report), QRET_BUSY);
	ck_assert_int_eq(world_cycle(&report), QRET_STANDBY);
	ck_assert_int_eq(world_logged("event=standby"), 2);
	world_end();
}
END_TEST

/* What is not there is named, and no lock is taken for it. */
static void schema_refused(const char *facts, const char *version, const char *option,
                           const char *value, const char *named)
{
	const struct script_entry entries[] = {
		{ .statement = "settings", .answer = "10" },
		{ .statement = "facts", .answer = facts },
		{ .statement = "schema_version", .answer = version },
	};

	world_begin_scripted(entries, version == NULL ? 2 : 3);
	if (option != NULL)
		world_set(option, value);
	ck_assert_int_eq(world_cycle(&report), QRET_ERR_SCHEMA);
	ck_assert_contains(qret_error_message(world.ctx), named);
	ck_assert_str_ne(qret_error_hint(world.ctx), "");
	ck_assert_int_eq(qret_error_is_retryable(world.ctx), 0);
	ck_assert_int_eq(report.consecutive_failures, 1);
	world_end();
}

START_TEST(finish_schema_refused)
{
	schema_refused("@1 f f f f f f f f f f f f f f f", NULL, NULL, NULL, "log_partitions");
	schema_refused("@1 f t f f f f t t t f f f f f f", NULL, NULL, NULL,
	               "log_retention_step_v1");
	schema_refused("@1 f t f f f t f t t f f f f f f", NULL, NULL, NULL,
	               "log_txns_purge_step_v1");
	schema_refused("@1 f t f f f t t f t f f f f f f", NULL, NULL, NULL,
	               "log_evict_max_wait_step_v1");
	schema_refused(WORLD_FACTS_V1, NULL, "step_version", "2", "log_retention_step_v2");
	schema_refused("@1 f t f f f t t t t f f f f f f", NULL, "engines", "event",
	               "event_prune_step_v1");
	schema_refused("@1 f t f f f t t t t f f f f f f", NULL, "gate", "lease",
	               "retention_lease_claim_v1");
	schema_refused(WORLD_FACTS_V1, "2", NULL, NULL, "version 2");
}
END_TEST

/* A host's own functions, with no record of ours: their contract is enough. */
START_TEST(finish_foreign_functions)
{
	const struct script_entry entries[] = {
		{ .statement = "settings", .answer = "10" },
		{ .statement = "facts",
		  .answer = "@1700000000000000 f t f f f t t t t f f f f f f - - -" },
		{ .statement = "gate_take", .answer = "f" },
	};

	world_begin_scripted(entries, COUNT_OF(entries));
	ck_assert_int_eq(world_cycle(&report), QRET_BUSY);
	world_end();
}
END_TEST

/* ---- Counts over cycles ------------------------------------------------------------------------ */

static const char *refuse_facts(struct script_call *call)
{
	return strcmp(call->statement, "facts") == 0 ? "ERROR 42501 permission denied for table x"
	                                             : NULL;
}

/* B05: failures in a row are counted, a success ends the row, and the last success stays known. */
START_TEST(finish_failures_in_a_row)
{
	world_begin(1, 5);
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	world.before = refuse_facts;
	for (int i = 1; i <= 3; i++) {
		ck_assert_int_eq(world_cycle(&report), QRET_ERR_PRIVILEGE);
		ck_assert_int_eq(report.consecutive_failures, i);
		ck_assert_int_eq(report.last_success_us, WORLD_CLOCK_US);
		ck_assert_str_eq(qret_error_sqlstate(world.ctx), "42501");
		ck_assert_contains(qret_error_message(world.ctx), "table x");
	}
	ck_assert_int_eq(world_logged("event=cycle_error"), 1);
	script_pass_ms(31000);
	ck_assert_int_eq(world_cycle(&report), QRET_ERR_PRIVILEGE);
	ck_assert_int_eq(world_logged("event=cycle_error"), 2);
	world.before = NULL;
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	ck_assert_int_eq(report.consecutive_failures, 0);
	world_end();
}
END_TEST

static const char *blocked_by;

static const char *facts_of_a_blocked_server(struct script_call *call)
{
	static char facts[256];

	if (strcmp(call->statement, "facts") != 0)
		return NULL;
	snprintf(facts, sizeof(facts), "%.*s %s", (int)strlen(world_facts(true)) - 6,
	         world_facts(true), strcmp(call->parameters, "t") == 0 ? blocked_by : "- - -");
	return facts;
}

static void look_a_minute_later(const char *blocked, int told)
{
	blocked_by = blocked;
	script_pass_ms(61000);
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	ck_assert_int_eq(world_logged("event=vacuum_blocked"), told);
}

/* B23, B84: an old snapshot over many dead rows is told once until it ends, and looked for once a minute. */
START_TEST(finish_vacuum_blocked)
{
	world_begin(0, 0);
	ck_assert_int_eq(qret_set_option(world.ctx, "interval_ms", "1000"), QRET_DONE);
	world.before = facts_of_a_blocked_server;
	look_a_minute_later("9999 1000000 42", 0);
	look_a_minute_later("10000 999999 42", 0);
	blocked_by = "10000 1000000 42";
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	ck_assert_int_eq(world_logged("event=vacuum_blocked"), 0);
	look_a_minute_later(blocked_by, 1);
	ck_assert_int_eq(world_logged("dead_rows=10000 held_ms=1000 pid=42"), 1);
	look_a_minute_later("20000 2000000 42", 1);
	look_a_minute_later("20000 - -", 1);
	look_a_minute_later("- - -", 1);
	look_a_minute_later("20000 2000000 -", 2);
	world_end();
}
END_TEST

START_TEST(finish_report_in_mid_cycle)
{
	struct qret_cycle_report running = { .size = sizeof(running) };
	int rc;

	world_begin(1500, 3);
	ck_assert_int_eq(qret_cycle_begin(world.ctx), QRET_DONE);
	ck_assert_int_eq(qret_cycle_get_report(world.ctx, &running), QRET_DONE);
	ck_assert_int_eq(running.outcome, QRET_MORE);
	ck_assert_int_eq(running.steps, 0);
	while ((rc = qret_cycle_process(world.ctx)) == QRET_MORE || rc == QRET_WAIT) {
		int64_t before = running.segments_deleted;

		ck_assert_int_eq(qret_cycle_get_report(world.ctx, &running), QRET_DONE);
		ck_assert_int_ge(running.segments_deleted, before);
		if (rc == QRET_WAIT)
			ck_assert_int_eq(qret_wait(world.ctx), QRET_DONE);
	}
	ck_assert_int_eq(rc, QRET_DONE);
	ck_assert_int_eq(qret_cycle_get_report(world.ctx, &running), QRET_DONE);
	ck_assert_int_eq(running.segments_deleted, 4500);
	ck_assert_int_eq(running.outcome, QRET_DONE);
	world_end();
}
END_TEST

/* ---- Cadence ----------------------------------------------------------------------------------- */

START_TEST(finish_next_is_an_interval_later)
{
	int64_t start_us;

	world_begin(1, 5);
	start_us = qret_now_us();
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	ck_assert_int_eq(qret_next_cycle_us(world.ctx), start_us + 5000000);
	ck_assert_int_eq(qret_wait(world.ctx), QRET_DONE);
	ck_assert_int_ge(qret_now_us(), start_us + 5000000);
	world_end();
}
END_TEST

START_TEST(finish_unreachable_backs_off)
{
	static const char *const refusing[] = { "connection refused", "connection refused",
		                                "connection refused", "connection refused" };
	int64_t pause_us = 0;

	world_begin(1, 5);
	world_set("interval_ms", "1");
	script_connects(refusing, COUNT_OF(refusing));
	for (size_t i = 0; i < COUNT_OF(refusing); i++) {
		ck_assert_int_eq(world_cycle(&report), QRET_ERR_CONNECTION);
		ck_assert_int_eq(qret_error_is_retryable(world.ctx), 1);
		pause_us = qret_next_cycle_us(world.ctx) - qret_now_us();
	}
	ck_assert_int_ge(pause_us, 2000000);
	qret_wait(world.ctx);
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	ck_assert_int_eq(world_logged("event=cycle_error"), 1);
	world_end();
}
END_TEST

/* A cycle that is refused was one: a host that begins when due is not told "now" for ever. */
START_TEST(finish_refused_cycle_was_one)
{
	int64_t start_us;

	world_begin(1, 5);
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	world_set("pooler", "transaction");
	for (int i = 0; i < 3; i++) {
		start_us = qret_now_us();
		ck_assert_int_eq(world_cycle(&report), QRET_ERR_OPTION);
		ck_assert_int_eq(qret_next_cycle_us(world.ctx), start_us + 5000000);
		qret_wait(world.ctx);
		ck_assert_int_ge(qret_now_us(), start_us + 5000000);
	}
	world_end();
}
END_TEST

int main(void)
{
	const TTest *tests[] = { finish_gate_busy,
		                 finish_release_unconfirmed,
		                 finish_standby,
		                 finish_schema_refused,
		                 finish_foreign_functions,
		                 finish_failures_in_a_row,
		                 finish_vacuum_blocked,
		                 finish_report_in_mid_cycle,
		                 finish_next_is_an_interval_later,
		                 finish_unreachable_backs_off,
		                 finish_refused_cycle_was_one,
		                 NULL };

	return unit_run("finish", tests);
}
