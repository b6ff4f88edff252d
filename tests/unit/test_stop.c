/* SPDX-License-Identifier: MIT */
/* A stop at every call of libpq and at every sleep: no batch begins after it, and the call is over soon. */
#include "script_world.h"

#include <poll.h>

static struct qret_cycle_report report;
static long stopped_at; /* which call of libpq it was; 0: not yet */
static int begun_after;

static void stop(void)
{
	stopped_at = script_calls();
	qret_stop(world.ctx);
}

/* What may still be sent after a stop: the release, and what surrounds it. */
static bool is_allowed(const char *statement)
{
	static const char *const allowed[] = { "gate_release", "begin", "commit", "set",
		                               "settings" };

	for (size_t i = 0; i < COUNT_OF(allowed); i++) {
		if (strcmp(statement, allowed[i]) == 0)
			return true;
	}
	return false;
}

static const char *watch(struct script_call *call)
{
	begun_after += stopped_at > 0 && call->queued > stopped_at && !is_allowed(call->statement);
	if (strncmp(call->statement, "step", 4) == 0)
		call->delay_ms = 5;
	return NULL;
}

static void begin(bool attached, const char *lanes, long n)
{
	if (attached)
		world_begin_attached(6, 130);
	else
		world_begin(6, 130);
	world.before = watch;
	world_set("parallelism", lanes);
	world_set("partition_cleanup", "on");
	stopped_at = 0;
	begun_after = 0;
	script_knobs.stop_at = n;
	script_knobs.stop = stop;
}

static void sweep(bool attached, const char *lanes)
{
	bool over = false;

	for (long n = 1; !over; n += unit_stride(29)) {
		int rc;

		begin(attached, lanes, n);
		rc = world_cycle(&report);
		over = stopped_at == 0;
		/* A stop that came when nothing was left to begin changes nothing. */
		ck_assert_msg(rc == QRET_STOPPED || rc == QRET_DONE, "stop at %ld: %d, %s", n, rc,
		              qret_error_message(world.ctx));
		if (rc == QRET_DONE)
			ck_assert_int_eq(world_left(), 0);
		ck_assert_msg(begun_after == 0, "stop at %ld: %d statements began after it", n,
		              begun_after);
		ck_assert_int_eq(report.segments_deleted, world.deleted);
		ck_assert_int_eq(script_sent("gate_take"), script_sent("gate_release"));
		script_knobs.stop_at = 0;
		qret_stop(world.ctx);
		ck_assert_int_eq(world_cycle(&report), QRET_STOPPED);
		qret_resume(world.ctx);
		ck_assert_int_eq(world_cycle(&report), QRET_DONE);
		ck_assert_int_eq(world_left(), 0);
		world_end();
	}
}

START_TEST(stop_at_every_call)
{
	sweep(false, "1");
}
END_TEST

START_TEST(stop_at_every_call_borrowed)
{
	sweep(true, "1");
}
END_TEST

START_TEST(stop_at_every_call_of_lanes)
{
	sweep(false, "3");
}
END_TEST

static const char *hang(struct script_call *call)
{
	watch(call);
	if (strncmp(call->statement, "step", 4) == 0)
		call->delay_ms = SCRIPT_NEVER;
	return NULL;
}

static void stop_asleep(void)
{
	qret_stop(world.ctx);
}

/* While the server hangs: what was sent is waited for within its limit, and nothing else is sent. */
START_TEST(stop_beside_hung_server)
{
	int64_t start_us;

	begin(false, "1", 0);
	world.before = hang;
	script_knobs.on_sleep = stop_asleep;
	start_us = qret_now_us();
	ck_assert_int_lt(world_cycle(&report), 0);
	ck_assert_int_le(qret_now_us() - start_us, 32000000);
	ck_assert_int_eq(begun_after, 0);
	world_end();
}
END_TEST

/* While it connects: at once. */
START_TEST(stop_beside_deaf_server)
{
	static const char *const behaviours[] = { "deaf" };
	int64_t start_us;

	begin(false, "1", 0);
	script_connects(behaviours, COUNT_OF(behaviours));
	script_knobs.on_sleep = stop_asleep;
	start_us = qret_now_us();
	ck_assert_int_eq(world_cycle(&report), QRET_STOPPED);
	ck_assert_int_eq(qret_now_us(), start_us);
	ck_assert_int_eq(script_open(), 0);
	world_end();
}
END_TEST

/* Between cycles: the wait ends at once, and again only after a resume does it last. */
START_TEST(stop_ends_the_wait)
{
	int64_t start_us;

	begin(false, "1", 0);
	ck_assert_int_eq(world_cycle(&report), QRET_DONE);
	script_knobs.on_sleep = stop_asleep;
	start_us = qret_now_us();
	ck_assert_int_eq(qret_wait(world.ctx), QRET_DONE);
	ck_assert_int_eq(qret_now_us(), start_us);
	ck_assert_int_eq(qret_wait(world.ctx), QRET_DONE);
	ck_assert_int_eq(qret_now_us(), start_us);
	qret_resume(world.ctx);
	ck_assert_int_eq(qret_wait(world.ctx), QRET_DONE);
	ck_assert_int_gt(qret_now_us(), start_us);
	world_end();
}
END_TEST

static bool wake_is_readable(void)
{
	struct qret_poll_fd fd;
	uint32_t count;
	struct pollfd polled;

	ck_assert_int_eq(qret_poll_fds(world.ctx, &fd, 1, &count), QRET_DONE);
	polled = (struct pollfd){ fd.fd, POLLIN, 0 };
	return poll(&polled, 1, 0) == 1;
}

/* A host's own loop sees the stop at the descriptor that is always listed. */
START_TEST(stop_wakes_a_hosts_loop)
{
	begin(false, "1", 0);
	ck_assert_int_eq(qret_cycle_begin(world.ctx), QRET_DONE);
	ck_assert(!wake_is_readable());
	qret_stop(world.ctx);
	ck_assert(wake_is_readable());
	ck_assert_int_eq(qret_cycle_process(world.ctx), QRET_STOPPED);
	ck_assert(!wake_is_readable());
	ck_assert_int_eq(qret_cycle_begin(world.ctx), QRET_STOPPED);
	qret_resume(world.ctx);
	ck_assert_int_eq(qret_cycle_begin(world.ctx), QRET_DONE);
	world_end();
}
END_TEST

int main(void)
{
	const TTest *tests[] = { stop_at_every_call,          stop_at_every_call_borrowed,
		                 stop_at_every_call_of_lanes, stop_beside_hung_server,
		                 stop_beside_deaf_server,     stop_ends_the_wait,
		                 stop_wakes_a_hosts_loop,     NULL };

	return unit_run("stop", tests);
}
