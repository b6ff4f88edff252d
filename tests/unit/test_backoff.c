/* SPDX-License-Identifier: MIT */
/* L19: an item that keeps failing is left alone for longer and longer; the table is bounded. */
#include "unit.h"

#include "backoff.h"
#include "clock.h"

static struct backoff backoff;

static const uint8_t *id_of(unsigned number)
{
	static uint8_t id[16];

	memset(id, 0, sizeof(id));
	id[0] = (uint8_t)number;
	id[15] = (uint8_t)(number >> 8);
	return id;
}

/* For how long the item is left alone after a strike now. */
static int64_t pause_ms(unsigned number, int64_t now_us)
{
	int64_t low = 0, high = 1000000000;

	while (low < high) {
		int64_t middle = (low + high) / 2;

		if (backoff_active(&backoff, id_of(number), now_us + middle * US_PER_MS))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

START_TEST(backoff_grows_in_intervals)
{
	static const int64_t expected[] = { 0, 100, 200, 400, 800, 1600 };

	memset(&backoff, 0, sizeof(backoff));
	ck_assert(!backoff_active(&backoff, id_of(1), 0));
	for (size_t i = 0; i < COUNT_OF(expected); i++) {
		backoff_strike(&backoff, id_of(1), 1, 1000, 100);
		ck_assert_int_eq(pause_ms(1, 1000), expected[i]);
	}
}
END_TEST

START_TEST(backoff_is_bounded)
{
	memset(&backoff, 0, sizeof(backoff));
	for (int i = 0; i < 1000; i++)
		backoff_strike(&backoff, id_of(1), 1, 0, 5000);
	ck_assert_int_eq(pause_ms(1, 0), 300000);
	memset(&backoff, 0, sizeof(backoff));
	for (int i = 0; i < 3; i++)
		backoff_strike(&backoff, id_of(1), 1, 0, INT64_MAX);
	ck_assert_int_eq(pause_ms(1, 0), 300000);
}
END_TEST

START_TEST(backoff_success_forgives)
{
	memset(&backoff, 0, sizeof(backoff));
	for (int i = 0; i < 4; i++) {
		backoff_strike(&backoff, id_of(1), 1, 0, 100);
		backoff_strike(&backoff, id_of(2), 1, 0, 100);
	}
	backoff_clear(&backoff, id_of(1), 2);
	ck_assert(backoff_active(&backoff, id_of(1), 1));
	backoff_clear(&backoff, id_of(1), 1);
	ck_assert(!backoff_active(&backoff, id_of(1), 1));
	ck_assert(backoff_active(&backoff, id_of(2), 1));
	backoff_clear(&backoff, id_of(1), 1);
	backoff_strike(&backoff, id_of(1), 1, 0, 100);
	ck_assert_int_eq(pause_ms(1, 0), 0);
}
END_TEST

/* Full, it forgets whoever would be free first. */
START_TEST(backoff_forgets_least_troubled)
{
	memset(&backoff, 0, sizeof(backoff));
	for (unsigned i = 0; i < BACKOFF_ENTRIES; i++) {
		for (unsigned strike = 0; strike < (i == 77 ? 2u : 4u); strike++)
			backoff_strike(&backoff, id_of(i), 1, 0, 100);
	}
	for (int strike = 0; strike < 4; strike++)
		backoff_strike(&backoff, id_of(1000), 1, 0, 100);
	ck_assert_uint_eq(backoff.count, BACKOFF_ENTRIES);
	ck_assert(!backoff_active(&backoff, id_of(77), 1));
	ck_assert(backoff_active(&backoff, id_of(1000), 1));
	for (unsigned i = 0; i < BACKOFF_ENTRIES; i++)
		ck_assert(i == 77 || backoff_active(&backoff, id_of(i), 1));
}
END_TEST

/* Dropped with its partition, or freed by another policy, an item is tried no more: nor is it counted. */
START_TEST(backoff_forgets_what_is_not_tried)
{
	const int64_t minute_us = 60 * US_PER_SECOND;

	memset(&backoff, 0, sizeof(backoff));
	for (unsigned i = 0; i < 5; i++)
		backoff_strike(&backoff, id_of(i), 1, 0, 100);
	backoff_strike(&backoff, id_of(3), 1, 9 * minute_us, 100);
	backoff_forget(&backoff, 9 * minute_us);
	ck_assert_uint_eq(backoff.count, 5);
	backoff_forget(&backoff, 11 * minute_us);
	ck_assert_uint_eq(backoff.count, 1);
	ck_assert_int_eq(backoff.entries[0].strikes, 2);
}
END_TEST

int main(void)
{
	const TTest *tests[] = { backoff_grows_in_intervals,        backoff_is_bounded,
		                 backoff_success_forgives,          backoff_forgets_least_troubled,
		                 backoff_forgets_what_is_not_tried, NULL };

	return unit_run("backoff", tests);
}
