/* SPDX-License-Identifier: MIT */
/* L22, B11. The clock is a parameter here, so nothing is slept. */
#include "unit.h"

#include "cadence.h"
#include "clock.h"

static struct cadence cadence;

/* When the next cycle is due after one that began at 0 s and ended at end_us. */
static int64_t next_after(int64_t interval_ms, int64_t end_us, int unreachable)
{
	cadence_started(&cadence, 0);
	cadence_ended(&cadence, end_us, interval_ms, unreachable);
	return cadence.next_us;
}

START_TEST(cadence_first_is_now)
{
	int64_t before_us = qret_now_us();

	cadence_init(&cadence, 1);
	ck_assert_int_ge(cadence.next_us, before_us);
	ck_assert_int_le(cadence.next_us, qret_now_us());
}
END_TEST

START_TEST(cadence_from_start_to_start)
{
	cadence_init(&cadence, 1);
	ck_assert_int_eq(next_after(5000, 1 * US_PER_SECOND, 0), 5 * US_PER_SECOND);
	ck_assert_int_eq(next_after(5000, 5 * US_PER_SECOND - 1, 0), 5 * US_PER_SECOND);
}
END_TEST

/* After an overrun: interval/10, but from one second to a minute; the missed ones are not made up for. */
START_TEST(cadence_overrun_pauses)
{
	static const struct {
		int64_t interval_ms, end_ms, pause_ms;
	} rows[] = {
		{ 100, 500, 1000 },
		{ 1, 500, 1000 },
		{ 5000, 5000, 1000 },
		{ 5000, 3600000, 1000 },
		{ 60000, 61000, 6000 },
		{ 599000, 600000, 59900 },
		{ 600000, 700000, 60000 },
		{ 3600000, 7200000, 60000 },
		{ 9007199254740992, INT64_MAX / 2000, 0 },
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		int64_t end_us = rows[i].end_ms * US_PER_MS;

		cadence_init(&cadence, 1);
		if (rows[i].pause_ms > 0)
			ck_assert_int_eq(next_after(rows[i].interval_ms, end_us, 0) - end_us,
			                 rows[i].pause_ms * US_PER_MS);
		else
			ck_assert_int_ge(next_after(rows[i].interval_ms, end_us, 0), end_us);
	}
}
END_TEST

START_TEST(cadence_longest_interval_saturates)
{
	cadence_init(&cadence, 1);
	cadence_started(&cadence, 1);
	cadence_ended(&cadence, 2, INT64_MAX, 0);
	ck_assert_int_eq(cadence.next_us, INT64_MAX);
}
END_TEST

/* The back-off grows, is jittered, ends, and starts afresh after a success. */
START_TEST(cadence_backs_off)
{
	int64_t end_us = 0, longest_us = 0;

	cadence_init(&cadence, 12345);
	for (int failure = 0; failure < 20; failure++) {
		int64_t most_us = (US_PER_SECOND / 2) << (failure < 7 ? failure : 7);
		int64_t pause_us;

		cadence_started(&cadence, end_us);
		cadence_ended(&cadence, end_us, 1, 1);
		pause_us = cadence.next_us - end_us;
		ck_assert_int_ge(pause_us, most_us / 2);
		ck_assert_int_le(pause_us, most_us);
		longest_us = pause_us > longest_us ? pause_us : longest_us;
		end_us = cadence.next_us;
	}
	ck_assert_int_ge(longest_us, 32 * US_PER_SECOND);
	ck_assert_int_le(longest_us, 64 * US_PER_SECOND);
	cadence_started(&cadence, end_us);
	cadence_ended(&cadence, end_us, 1, 0);
	cadence_started(&cadence, end_us);
	cadence_ended(&cadence, end_us, 1, 1);
	ck_assert_int_le(cadence.next_us - end_us, US_PER_SECOND / 2);
}
END_TEST

/* The interval still holds: failing is no reason to come back sooner. */
START_TEST(cadence_backoff_keeps_interval)
{
	cadence_init(&cadence, 1);
	ck_assert_int_eq(next_after(60000, US_PER_SECOND, 1), 60 * US_PER_SECOND);
}
END_TEST

START_TEST(cadence_jitter_differs)
{
	int64_t first_us = 0;
	bool differs = false;

	for (uint32_t seed = 1; seed < 20; seed++) {
		cadence_init(&cadence, seed * 1000003);
		for (int failure = 0; failure < 7; failure++)
			next_after(1, 0, 1);
		differs = differs || (first_us != 0 && cadence.next_us != first_us);
		first_us = cadence.next_us;
	}
	ck_assert(differs);
}
END_TEST

/* Told by the lease when to look again: sooner than planned, never later. */
START_TEST(cadence_wait_only_shortens)
{
	cadence_init(&cadence, 1);
	next_after(5000, US_PER_SECOND, 0);
	cadence_wait(&cadence, US_PER_SECOND, 1000);
	ck_assert_int_ge(cadence.next_us, 2 * US_PER_SECOND);
	ck_assert_int_lt(cadence.next_us, 3 * US_PER_SECOND);
	next_after(5000, US_PER_SECOND, 0);
	cadence_wait(&cadence, US_PER_SECOND, 100000);
	ck_assert_int_eq(cadence.next_us, 5 * US_PER_SECOND);
}
END_TEST

START_TEST(clock_after_saturates)
{
	ck_assert_int_eq(clock_after_ms(10, 5), 5010);
	ck_assert_int_eq(clock_after_ms(10, 0), 10);
	ck_assert_int_eq(clock_after_ms(10, -5), 10);
	ck_assert_int_eq(clock_after_ms(10, INT64_MAX), NO_DEADLINE);
	ck_assert_int_eq(clock_after_ms(INT64_MAX, 1), NO_DEADLINE);
	ck_assert_int_eq(clock_after_ms(0, INT64_MAX / 1000), INT64_MAX / 1000 * 1000);
	ck_assert_int_eq(clock_after_ms(0, INT64_MAX / 1000 + 1), NO_DEADLINE);
}
END_TEST

START_TEST(clock_rises)
{
	int64_t last_us = qret_now_us();

	for (int i = 0; i < 1000; i++) {
		int64_t now_us = qret_now_us();

		ck_assert(now_us >= last_us);
		last_us = now_us;
	}
}
END_TEST

int main(void)
{
	const TTest *tests[] = { cadence_first_is_now,
		                 cadence_from_start_to_start,
		                 cadence_overrun_pauses,
		                 cadence_longest_interval_saturates,
		                 cadence_backs_off,
		                 cadence_backoff_keeps_interval,
		                 cadence_jitter_differs,
		                 cadence_wait_only_shortens,
		                 clock_after_saturates,
		                 clock_rises,
		                 NULL };

	return unit_run("cadence", tests);
}
