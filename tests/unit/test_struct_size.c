/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include <stddef.h>

#include "struct_size.h"

struct known {
	uint32_t size, a;
	int64_t b, c;
};

#define LEAST 16

/* A caller's struct of any size, with guard bytes behind it. */
static unsigned char caller[8192];

static void *caller_of(uint32_t size)
{
	memset(caller, 0xee, sizeof(caller));
	memcpy(caller, &size, sizeof(size));
	return caller;
}

static void assert_untouched_after(size_t size)
{
	for (size_t i = size; i < sizeof(caller); i++)
		if (caller[i] != 0xee)
			ck_abort_msg("byte %zu was written", i);
}

static const struct known source = { sizeof(struct known), 7, 8, 9 };

START_TEST(struct_check_bounds)
{
	ck_assert_int_eq(struct_check(NULL, LEAST), QRET_ERR_ARGUMENT);
	ck_assert_int_eq(struct_check(caller_of(0), LEAST), QRET_ERR_ARGUMENT);
	ck_assert_int_eq(struct_check(caller_of(LEAST - 1), LEAST), QRET_ERR_ARGUMENT);
	ck_assert_int_eq(struct_check(caller_of(LEAST), LEAST), QRET_DONE);
	ck_assert_int_eq(struct_check(caller_of(4096), LEAST), QRET_DONE);
	ck_assert_int_eq(struct_check(caller_of(4097), LEAST), QRET_ERR_ARGUMENT);
	ck_assert_int_eq(struct_check(caller_of(UINT32_MAX), LEAST), QRET_ERR_ARGUMENT);
}
END_TEST

START_TEST(struct_write_older_caller)
{
	struct known *target = caller_of(LEAST);

	ck_assert_int_eq(struct_write(target, &source, sizeof(source), LEAST), QRET_DONE);
	ck_assert_uint_eq(target->size, LEAST);
	ck_assert_uint_eq(target->a, 7);
	ck_assert_int_eq(target->b, 8);
	assert_untouched_after(LEAST);
}
END_TEST

START_TEST(struct_write_newer_caller_is_zeroed)
{
	struct known *target = caller_of(4096);

	ck_assert_int_eq(struct_write(target, &source, sizeof(source), LEAST), QRET_DONE);
	ck_assert_uint_eq(target->size, 4096);
	ck_assert_int_eq(target->c, 9);
	for (size_t i = sizeof(source); i < 4096; i++) {
		if (caller[i] != 0)
			ck_abort_msg("byte %zu of the tail is not zero", i);
	}
	assert_untouched_after(4096);
}
END_TEST

START_TEST(struct_write_refused_touches_nothing)
{
	caller_of(LEAST - 1);
	ck_assert_int_eq(struct_write(caller, &source, sizeof(source), LEAST), QRET_ERR_ARGUMENT);
	assert_untouched_after(sizeof(uint32_t));
	ck_assert_int_eq(struct_write(NULL, &source, sizeof(source), LEAST), QRET_ERR_ARGUMENT);
}
END_TEST

START_TEST(struct_read_older_caller_is_zero_filled)
{
	struct known target;

	memset(&target, 0xff, sizeof(target));
	caller_of(LEAST);
	ck_assert_int_eq(struct_read(&target, caller, sizeof(target), LEAST), QRET_DONE);
	ck_assert_uint_eq(target.a, 0xeeeeeeee);
	ck_assert_int_eq(target.c, 0);
}
END_TEST

START_TEST(struct_read_unknown_tail)
{
	struct known target;

	caller_of(64);
	memset(caller + 4, 0, 60);
	ck_assert_int_eq(struct_read(&target, caller, sizeof(target), LEAST), QRET_DONE);
	caller[63] = 1;
	ck_assert_int_eq(struct_read(&target, caller, sizeof(target), LEAST), QRET_ERR_ARGUMENT);
	caller[63] = 0;
	caller[sizeof(target)] = 1;
	ck_assert_int_eq(struct_read(&target, caller, sizeof(target), LEAST), QRET_ERR_ARGUMENT);
}
END_TEST

/* The layouts that hosts are compiled against. */
START_TEST(struct_layouts_are_as_published)
{
	ck_assert_uint_eq(sizeof(struct qret_work_item), 72);
	ck_assert_uint_eq(offsetof(struct qret_work_item, all_cutoff_us), 40);
	ck_assert_uint_eq(sizeof(struct qret_step_result), 40);
	ck_assert_uint_eq(sizeof(struct qret_cycle_report), 216);
	ck_assert_uint_eq(offsetof(struct qret_cycle_report, elapsed_us), 136);
	ck_assert_uint_eq(sizeof(struct qret_poll_fd), 8);
}
END_TEST

int main(void)
{
	const TTest *tests[] = { struct_check_bounds,
		                 struct_write_older_caller,
		                 struct_write_newer_caller_is_zeroed,
		                 struct_write_refused_touches_nothing,
		                 struct_read_older_caller_is_zero_filled,
		                 struct_read_unknown_tail,
		                 struct_layouts_are_as_published,
		                 NULL };

	return unit_run("struct_size", tests);
}
