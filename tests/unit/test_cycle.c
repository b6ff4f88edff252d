/* SPDX-License-Identifier: MIT */
/* The order of a cycle's statements with their parameters, and what each outcome leaves behind. L13 to L16, L22. */
#include "script_world.h"

#include <libpq-fe.h>

static struct qret_cycle_report report;

static struct qret_ctx *begin_scripted(const struct script_entry *entries, size_t count)
{
	world_begin(0, 0);
	script_serve(NULL);
	script_expect(entries, count);
	return world.ctx;
}

#define FACTS_V1 "@1700000000000000 f t f t f t t t t f f f f f f - - -"

/* One cycle, statement by statement. */
START_TEST(cycle_sequence)
{
	const struct script_entry entries[] = {
		{ "settings", "f 30000 500 200 30000", "10", 0, 0, 1 },
		{ "facts", "t", FACTS_V1, 0, 0, 1 },
		{ "schema_version", "'log", "1", 0, 0, 1 },
		{ "gate_take", "737001", "t", 0, 0, 1 },
		{ "worklist_scan", "- - 1000",
		  "@1700000000000000 #1 #9 @50 @40 @30 -/@1700000000000000 #2 #9 - - @30 @20", 0, 0,
		  1 },
		{ "step_retention_v1", "#1 @50 @40 100 f", "100 500 500 f 900 f", 0, 0, 1 },
		{ "step_retention_v1", NULL, "7 30 530 t 100 f", 0, 0, 1 },
		{ "step_txns_v1", NULL, "3 0 530 t 100 f", 0, 0, 1 },
		{ "step_txns_v1", NULL, "0 0 0 t 100 f", 0, 0, 1 },
		{ "step_max_wait_v1", NULL, "2 8 8 t 100 f", 0, 0, 1 },
		{ "step_cleanup_v1", "@1697408000000000 1000", "1 t 100 - 0 0 - 0 -", 0, 0, 1 },
		{ "metrics_purge", "@1692224000000000 200", "4 100", 0, 0, 1 },
		{ "metrics_purge", "@1692224000000000 200", "0 100", 0, 0, 1 },
		{ "metrics_purge", "@1692224000000000 200", "0 100", 0, 0, 1 },
		{ "metrics_purge", "@1692224000000000 200", "0 100", 0, 0, 1 },
		{ "metrics_purge", "@1692224000000000 200", "0 100", 0, 0, 1 },
		{ "gate_release", "737001", "t", 0, 0, 1 },
	};

	begin_scripted(entries, COUNT_OF(entries));
	world_set("partition_cleanup", "on");
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	ck_assert_int_eq(report.clock_us, 1700000000000000);
	ck_assert_int_eq(report.queues, 1);
	ck_assert_int_eq(report.partitions, 4);
	ck_assert_int_eq(report.steps, 11);
	ck_assert_int_eq(report.segments_deleted, 107);
	ck_assert_int_eq(report.messages_deleted, 538);
	ck_assert_int_eq(report.txns_purged, 3);
	ck_assert_int_eq(report.max_wait_evicted, 2);
	ck_assert_int_eq(report.partitions_deleted, 1);
	ck_assert_int_eq(report.metrics_purged, 4);
	ck_assert_int_eq(report.items_failed, 0);
	ck_assert_int_eq(report.consecutive_failures, 0);
	ck_assert_int_eq(report.last_success_us, 1700000000000000);
	ck_assert_contains(world.log, "event=swept queues=1 segments_deleted=107");
	world_end();
}
END_TEST

/* A second page goes on behind the first, at the first one's clock. */
START_TEST(cycle_pages_share_one_clock)
{
	world_begin(2500, 1);
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	ck_assert_int_eq(report.segments_deleted, 2500);
	ck_assert_int_eq(report.partitions, 2500);
	ck_assert_int_eq(report.queues, 10);
	ck_assert_int_eq(report.clock_us, WORLD_CLOCK_US);
	ck_assert_int_eq(script_sent("worklist_scan"), 3);
	ck_assert_int_eq(script_sent("metrics_purge"), 5);
	world_end();
}
END_TEST

static const char *page_parameters[4];
static int pages;

static const char *watch_pages(struct script_call *call)
{
	static char kept[4][128];

	if (strcmp(call->statement, "worklist_scan") == 0 && pages < 4) {
		strncpy(kept[pages], call->parameters, sizeof(kept[0]) - 1);
		page_parameters[pages] = kept[pages];
		pages++;
	}
	return NULL;
}

START_TEST(cycle_page_parameters)
{
	world_begin(1000, 0);
	pages = 0;
	world.before = watch_pages;
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	ck_assert_int_eq(pages, 2);
	ck_assert_str_eq(page_parameters[0], "- - 1000");
	ck_assert_str_eq(page_parameters[1], "@1700000000000000 #1000 1000");
	world_end();
}
END_TEST

/* Busy is an outcome: nothing is swept, nothing released, nothing said above debug. */
START_TEST(cycle_gate_busy)
{
	const struct script_entry entries[] = {
		{ .statement = "settings", .answer = "10" },
		{ .statement = "facts", .answer = FACTS_V1 },
		{ .statement = "schema_version", .answer = "1" },
		{ .statement = "gate_take", .answer = "f" },
	};

	begin_scripted(entries, COUNT_OF(entries));
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
		{ .statement = "facts", .answer = FACTS_V1 },
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

	begin_scripted(entries, COUNT_OF(entries));
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	ck_assert_int_eq(script_open(), 0);
	ck_assert_int_eq(world_logged("event=release_failed"), 1);
	world_end();
}

START_TEST(cycle_release_unconfirmed)
{
	release_unconfirmed("f");
	release_unconfirmed("-");
	release_unconfirmed("");
	release_unconfirmed("ERROR 57014 canceled");
	release_unconfirmed("FATAL 57P01 shutting down");
}
END_TEST

START_TEST(cycle_standby)
{
	static const char standby[] = "@1700000000000000 t t f t f t t t t f f f f f f - - -";
	const struct script_entry entries[] = {
		{ .statement = "settings", .answer = "10" },
		{ .statement = "facts", .answer = standby },
		{ .statement = "facts", .answer = standby },
		{ .statement = "facts", .answer = FACTS_V1 },
		{ .statement = "schema_version", .answer = "1" },
		{ .statement = "gate_take", .answer = "f" },
		{ .statement = "facts", .answer = standby },
	};

	begin_scripted(entries, COUNT_OF(entries));
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

	begin_scripted(entries, version == NULL ? 2 : 3);
	if (option != NULL)
		world_set(option, value);
	ck_assert_int_eq(world_cycle(&report), QRET_ERR_SCHEMA);
	ck_assert_contains(qret_error_message(world.ctx), named);
	ck_assert_str_ne(qret_error_hint(world.ctx), "");
	ck_assert_int_eq(qret_error_is_retryable(world.ctx), 0);
	ck_assert_int_eq(report.consecutive_failures, 1);
	world_end();
}

START_TEST(cycle_schema_refused)
{
	schema_refused("@1 f f f f f f f f f f f f f f f", NULL, NULL, NULL, "log_partitions");
	schema_refused("@1 f t f f f f t t t f f f f f f", NULL, NULL, NULL,
	               "log_retention_step_v1");
	schema_refused("@1 f t f f f t f t t f f f f f f", NULL, NULL, NULL,
	               "log_txns_purge_step_v1");
	schema_refused("@1 f t f f f t t f t f f f f f f", NULL, NULL, NULL,
	               "log_evict_max_wait_step_v1");
	schema_refused(FACTS_V1, NULL, "step_version", "2", "log_retention_step_v2");
	schema_refused("@1 f t f f f t t t t f f f f f f", NULL, "engines", "event",
	               "event_prune_step_v1");
	schema_refused("@1 f t f f f t t t t f f f f f f", NULL, "gate", "lease",
	               "retention_lease_claim_v1");
	schema_refused(FACTS_V1, "2", NULL, NULL, "version 2");
}
END_TEST

/* A host's own functions, with no record of ours: their contract is enough. */
START_TEST(cycle_foreign_functions)
{
	const struct script_entry entries[] = {
		{ .statement = "settings", .answer = "10" },
		{ .statement = "facts",
		  .answer = "@1700000000000000 f t f f f t t t t f f f f f f - - -" },
		{ .statement = "gate_take", .answer = "f" },
	};

	begin_scripted(entries, COUNT_OF(entries));
	ck_assert_int_eq(world_cycle(&report), QRET_BUSY);
	world_end();
}
END_TEST

/* The session is used again by the next cycle; the clean-up comes at most once a minute. */
START_TEST(cycle_again)
{
	world_begin(1, 5);
	world_set("partition_cleanup", "on");
	for (int i = 0; i < 5; i++) {
		ck_assert_int_eq(world_cycle(&report), QRET_DONE);
		script_pass_ms(5000);
	}
	ck_assert_int_eq(script_opened(), 1);
	ck_assert_int_eq(script_sent("step_cleanup_v2"), 1);
	ck_assert_int_eq(script_sent("settings"), 1);
	for (int i = 0; i < 10; i++) {
		script_pass_ms(5000);
		ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	}
	ck_assert_int_eq(script_sent("step_cleanup_v2"), 2);
	world_end();
}
END_TEST

/* A session that was idle for nearly as long as the server allows is not raced with. */
START_TEST(cycle_idle_session_is_replaced)
{
	world_begin(1, 5);
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	script_pass_ms(29000);
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	ck_assert_int_eq(script_opened(), 2);
	ck_assert_int_eq(script_open(), 1);
	world_end();
}
END_TEST

/* L14: a page that has grown old is read again by id, at the same clock, before anything more is sent. */
static bool was_slow;

static const char *slow_first_step(struct script_call *call)
{
	if (strncmp(call->statement, "step_retention", 14) == 0 && !was_slow) {
		was_slow = true;
		call->delay_ms = 61000;
		return NULL;
	}
	if (strcmp(call->statement, "worklist_by_id") != 0)
		return NULL;
	ck_assert_str_eq(call->parameters, "@1700000000000000 {#1,#2,#3}");
	return "@1700000000000000 #1 #1 - - - -/@1700000000000000 #3 #1 @1 - - -";
}

START_TEST(cycle_old_page_is_read_again)
{
	world_begin(3, 150);
	world_set("statement_timeout_ms", "0");
	was_slow = false;
	world.before = slow_first_step;
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	ck_assert_int_eq(script_sent("worklist_by_id"), 1);
	/* #2 was dropped and #1's policy switched off meanwhile */
	ck_assert_int_eq(world.segments[1], 150);
	ck_assert_int_eq(world.segments[2], 0);
	world_end();
}
END_TEST

/* ---- A borrowed connection ------------------------------------------------------------------- */

START_TEST(cycle_borrowed_is_given_back)
{
	struct pg_conn *connection;
	int32_t tainted = 77;

	world_begin_attached(3, 150);
	connection = world.ctx->lanes[0].session.connection;
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(world_cycle(&report), QRET_DONE);
		ck_assert_int_eq(PQpipelineStatus(connection), PQ_PIPELINE_OFF);
		ck_assert_int_eq(PQisnonblocking(connection), 0);
	}
	/* each statement in an envelope of its own */
	ck_assert_int_eq(script_sent("begin"), script_sent("commit"));
	ck_assert_int_eq(script_sent("begin"), script_sent("settings"));
	ck_assert_int_eq(script_opened(), 1);
	ck_assert_int_eq(qret_detach(world.ctx, &tainted), QRET_DONE);
	ck_assert_int_eq(tainted, 0);
	world_end();
}
END_TEST

START_TEST(cycle_borrowed_nonblocking_stays)
{
	struct pg_conn *connection;

	world_begin_attached(1, 5);
	connection = world.ctx->lanes[0].session.connection;
	PQsetnonblocking(connection, 1);
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	ck_assert_int_eq(PQisnonblocking(connection), 1);
	world_end();
}
END_TEST

START_TEST(cycle_detach_in_mid_cycle_taints)
{
	int32_t tainted = 77;

	world_begin_attached(3, 1);
	ck_assert_int_eq(qret_cycle_begin(world.ctx), QRET_DONE);
	ck_assert_int_gt(qret_cycle_process(world.ctx), QRET_DONE);
	ck_assert_int_eq(qret_detach(world.ctx, &tainted), QRET_DONE);
	ck_assert_int_eq(tainted, 1);
	ck_assert_int_eq(qret_cycle_process(world.ctx), QRET_ERR_STATE);
	ck_assert_int_eq(qret_cycle_begin(world.ctx), QRET_ERR_STATE);
	world_end();
}
END_TEST

/* ---- The gate, taken by hand ------------------------------------------------------------------- */

START_TEST(cycle_uses_and_keeps_the_hosts_gate)
{
	world_begin(2, 5);
	ck_assert_int_eq(qret_gate_take(world.ctx), QRET_DONE);
	ck_assert_int_eq(qret_gate_take(world.ctx), QRET_ERR_STATE);
	ck_assert_int_eq(qret_set_option(world.ctx, "batch_size", "5"), QRET_ERR_STATE);
	ck_assert_int_eq(qret_connect(world.ctx, ""), QRET_ERR_STATE);
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	ck_assert_int_eq(script_sent("gate_take"), 1);
	ck_assert_int_eq(script_sent("gate_release"), 0);
	/* a release is allowed while stopped */
	qret_stop(world.ctx);
	ck_assert_int_eq(qret_gate_release(world.ctx), QRET_DONE);
	ck_assert_int_eq(script_sent("gate_release"), 1);
	ck_assert_int_eq(qret_gate_release(world.ctx), QRET_ERR_STATE);
	world_end();
}
END_TEST

/* Given back with the session lock still on it: the host must discard it. */
START_TEST(cycle_detach_under_the_gate_taints)
{
	int32_t tainted = 77;

	world_begin_attached(2, 5);
	ck_assert_int_eq(qret_gate_take(world.ctx), QRET_DONE);
	ck_assert_int_eq(qret_detach(world.ctx, &tainted), QRET_DONE);
	ck_assert_int_eq(tainted, 1);
	ck_assert_int_eq(qret_gate_release(world.ctx), QRET_ERR_STATE);
	world_end();
	world_begin_attached(2, 5);
	world_set("gate", "none");
	ck_assert_int_eq(qret_gate_take(world.ctx), QRET_DONE);
	ck_assert_int_eq(qret_detach(world.ctx, &tainted), QRET_DONE);
	ck_assert_int_eq(tainted, 0);
	world_end();
}
END_TEST

START_TEST(cycle_gate_none_asks_nobody)
{
	world_begin(2, 5);
	world_set("gate", "none");
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	ck_assert_int_eq(script_sent("gate_take") + script_sent("gate_release"), 0);
	world_end();
}
END_TEST

START_TEST(cycle_lost_gate_is_noticed)
{
	world_begin(2, 5);
	ck_assert_int_eq(qret_gate_take(world.ctx), QRET_DONE);
	script_knobs.die_at = 1;
	ck_assert_int_eq(world_cycle(&report), QRET_ERR_LEADER_LOST);
	ck_assert_int_eq(world.deleted, 0);
	ck_assert_int_eq(qret_gate_release(world.ctx), QRET_ERR_STATE);
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	ck_assert_int_eq(world_left(), 0);
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
START_TEST(cycle_failures_in_a_row)
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
START_TEST(cycle_vacuum_blocked)
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

START_TEST(cycle_report_in_mid_cycle)
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

START_TEST(cycle_next_is_an_interval_later)
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

START_TEST(cycle_unreachable_backs_off)
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

int main(void)
{
	const TTest *tests[] = { cycle_sequence,
		                 cycle_pages_share_one_clock,
		                 cycle_page_parameters,
		                 cycle_gate_busy,
		                 cycle_release_unconfirmed,
		                 cycle_standby,
		                 cycle_schema_refused,
		                 cycle_foreign_functions,
		                 cycle_again,
		                 cycle_idle_session_is_replaced,
		                 cycle_old_page_is_read_again,
		                 cycle_borrowed_is_given_back,
		                 cycle_borrowed_nonblocking_stays,
		                 cycle_detach_in_mid_cycle_taints,
		                 cycle_uses_and_keeps_the_hosts_gate,
		                 cycle_gate_none_asks_nobody,
		                 cycle_detach_under_the_gate_taints,
		                 cycle_lost_gate_is_noticed,
		                 cycle_failures_in_a_row,
		                 cycle_vacuum_blocked,
		                 cycle_report_in_mid_cycle,
		                 cycle_next_is_an_interval_later,
		                 cycle_unreachable_backs_off,
		                 NULL };

	return unit_run("cycle", tests);
}
