/* SPDX-License-Identifier: MIT */
/*
 * The connection dies at the n-th call of libpq, for every n of a whole cycle, and so do an allocation inside
 * libpq and the second lane. Each time the call returns once, with its class; nothing is leaked; nothing hangs; and the
 * next cycle finishes the work. B68, B69, B70, B71.
 */
#include "script_memory.h"
#include "script_world.h"

static struct qret_cycle_report report;
static bool release_sent;

static const char *watch_release(struct script_call *call)
{
	release_sent = release_sent || strcmp(call->statement, "gate_release") == 0;
	if (strncmp(call->statement, "step_retention", 14) == 0)
		call->delay_ms = 8;
	return NULL;
}

struct way {
	bool attached, late, refuse, other_phases;
	int lanes, connection;
};

static void begin(const struct way *way)
{
	memory_begin(0, false);
	/* Further lanes are opened only where there is work for them. */
	if (way->attached)
		world_begin_attached(3, 110);
	else
		world_begin(way->lanes > 1 ? 40 : 3, way->lanes > 1 ? 1 : 110);
	world_set("parallelism", way->lanes == 2 ? "2" : way->lanes == 3 ? "3" : "1");
	world_set("partition_cleanup", "on");
	world.other_phases = way->other_phases;
	world.before = watch_release;
	release_sent = false;
}

/* Lane 0 lost: the class of a lost connection, unless all that was left was to give the gate back. */
static void check_outcome(const struct way *way, int rc, long n)
{
	bool spare_lane = way->connection > 1;
	int expected = spare_lane || release_sent ? QRET_DONE : QRET_ERR_CONNECTION;

	/* A refusal of libpq's for lack of memory may also hit a connect or a lane. */
	if (way->refuse || way->attached)
		ck_assert_msg(rc == QRET_DONE || rc == QRET_ERR_CONNECTION ||
		                      rc == QRET_ERR_STATE || rc == QRET_ERR_SQL ||
		                      rc == QRET_PARTIAL,
		              "call %ld: %d, %s", n, rc, qret_error_message(world.ctx));
	else
		ck_assert_msg(rc == expected || rc == QRET_DONE, "call %ld: %d, %s", n, rc,
		              qret_error_message(world.ctx));
	if (rc < 0)
		ck_assert_msg(qret_error_message(world.ctx)[0] != '\0', "call %ld: no message", n);
	/* Nothing is counted that the server did not tell. */
	ck_assert_int_le(report.segments_deleted, world.deleted);
}

static void finish_the_work(const struct way *way)
{
	if (way->attached) {
		int32_t tainted = 0;

		ck_assert_int_eq(qret_detach(world.ctx, &tainted), QRET_DONE);
		ck_assert_int_eq(qret_attach(world.ctx, script_host_connection()), QRET_DONE);
	}
	script_pass_ms(70000);
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	ck_assert_int_eq(world_left(), 0);
}

/* Returns after how many calls a cycle is over unharmed. */
static long sweep(const struct way *way)
{
	for (long n = 1;; n += unit_stride(31)) {
		bool over;

		begin(way);
		script_knobs.die_late = way->late;
		script_knobs.die_connection = way->connection;
		if (way->refuse)
			script_knobs.refuse_at = n;
		else
			script_knobs.die_at = n;
		check_outcome(way, world_cycle(&report), n);
		over = !script_died();
		memset(&script_knobs, 0, sizeof(script_knobs));
		finish_the_work(way);
		world_end();
		ck_assert_msg(memory_end() == 0, "call %ld: memory is held", n);
		if (over)
			return n;
	}
}

START_TEST(cut_owned)
{
	const struct way way = { .other_phases = true };

	ck_assert_int_gt(sweep(&way), 300);
}
END_TEST

/* The kernel takes what is written to a connection whose other end is gone; the loss shows later. */
START_TEST(cut_owned_late)
{
	const struct way way = { .late = true };

	ck_assert_int_gt(sweep(&way), 200);
}
END_TEST

START_TEST(cut_borrowed)
{
	const struct way way = { .attached = true };

	ck_assert_int_gt(sweep(&way), 200);
}
END_TEST

START_TEST(cut_borrowed_late)
{
	const struct way way = { .attached = true, .late = true };

	ck_assert_int_gt(sweep(&way), 200);
}
END_TEST

/* The first of several lanes holds the gate: its loss ends the cycle. */
START_TEST(cut_first_lane)
{
	const struct way way = { .lanes = 3, .connection = 1 };

	ck_assert_int_gt(sweep(&way), 200);
}
END_TEST

/* The loss of another one does not: its items are taken over. */
START_TEST(cut_second_lane)
{
	const struct way way = { .lanes = 3, .connection = 2 },
			 late = { .lanes = 3, .connection = 2, .late = true };

	ck_assert_int_gt(sweep(&way), 20);
	ck_assert_int_gt(sweep(&late), 20);
}
END_TEST

/* libpq itself runs out of memory at the n-th call that can. */
START_TEST(cut_refused_by_libpq)
{
	const struct way way = { .refuse = true, .lanes = 2 };

	ck_assert_int_gt(sweep(&way), 50);
}
END_TEST

START_TEST(cut_refused_borrowed)
{
	const struct way way = { .refuse = true, .attached = true };

	ck_assert_int_gt(sweep(&way), 50);
}
END_TEST

/* The same for the other calls that reach a server. */
static int call_step(void)
{
	struct qret_work_item item = { .size = sizeof(item),
		                       .all_cutoff_us = 1,
		                       .completed_cutoff_us = QRET_CUTOFF_OFF };
	struct qret_step_result result = { .size = sizeof(result) };

	item.partition_id[15] = 1;
	return qret_step(world.ctx, QRET_PHASE_RETENTION, &item, &result);
}

static int call_worklist(void)
{
	struct qret_worklist *list = NULL;
	int rc = qret_worklist_build(world.ctx, &list);

	ck_assert((list != NULL) == (rc == QRET_DONE));
	qret_worklist_free(list);
	return rc;
}

static int call_gate(void)
{
	int rc = qret_gate_take(world.ctx);

	if (rc == QRET_DONE)
		qret_gate_release(world.ctx);
	return rc;
}

static int call_version(void)
{
	int32_t version = 77;
	int rc = qret_schema_version(world.ctx, "log", &version);

	ck_assert_int_eq(version, rc == QRET_DONE ? 1 : 77);
	return rc;
}

START_TEST(cut_other_calls)
{
	int (*const calls[])(void) = { call_step, call_worklist, call_gate, call_version };

	for (size_t i = 0; i < COUNT_OF(calls); i++) {
		for (int late = 0; late < 2; late++) {
			bool over = false;

			for (long n = 1; !over; n += unit_stride(13)) {
				int rc;

				memory_begin(0, false);
				world_begin(4, 10);
				script_knobs.die_at = n;
				script_knobs.die_late = late;
				rc = calls[i]();
				over = !script_died();
				ck_assert_msg(rc == QRET_DONE || rc == QRET_ERR_CONNECTION,
				              "call %zu cut at %ld: %d", i, n, rc);
				memset(&script_knobs, 0, sizeof(script_knobs));
				ck_assert_int_eq(calls[i](), QRET_DONE);
				world_end();
				ck_assert_int_eq(memory_end(), 0);
			}
		}
	}
}
END_TEST

int main(void)
{
	const TTest *tests[] = { cut_owned,
		                 cut_owned_late,
		                 cut_borrowed,
		                 cut_borrowed_late,
		                 cut_first_lane,
		                 cut_second_lane,
		                 cut_refused_by_libpq,
		                 cut_refused_borrowed,
		                 cut_other_calls,
		                 NULL };

	return unit_run("fault_cut", tests);
}
