/* SPDX-License-Identifier: MIT */
/* The order of a cycle's statements with their parameters, on its own connection and a borrowed one, and the gate. L13 to L16. */
#include "script_world.h"

#include <libpq-fe.h>

static struct qret_cycle_report report;

/* One cycle, statement by statement. */
START_TEST(cycle_sequence)
{
	const struct script_entry entries[] = {
		{ "settings", "f 30000 500 200 30000", "10", 0, 0, 1 },
		{ "facts", "t", WORLD_FACTS_V1, 0, 0, 1 },
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

	world_begin_scripted(entries, COUNT_OF(entries));
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

int main(void)
{
	const TTest *tests[] = { cycle_sequence,
		                 cycle_pages_share_one_clock,
		                 cycle_page_parameters,
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
		                 NULL };

	return unit_run("cycle", tests);
}
