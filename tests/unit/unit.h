/* SPDX-License-Identifier: MIT */
/* What every unit test program shares. A test file mirrors a file of lib/; it asserts behaviour, never time. */
#ifndef QRET_TESTS_UNIT_H
#define QRET_TESTS_UNIT_H

#include <check.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "qretention.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* Runs the tests; the list ends with NULL. Returns main's exit code. */
int unit_run(const char *module, const TTest *const *tests);

/* Whether text is valid UTF-8, by a decoder that shares nothing with the library's. */
bool unit_is_utf8(const char *text);

/* 1; under valgrind, where each round costs fifty times as much, `slow`: for sweeps that then take every n-th. */
long unit_stride(long slow);

/* How many descriptors this process has open. */
int unit_open_descriptors(void);

/* As ck_assert_msg, without its bookkeeping: for what is checked at every call, or while memory is short. */
#define REQUIRE(condition, ...)                    \
	do {                                       \
		if (!(condition))                  \
			ck_abort_msg(__VA_ARGS__); \
	} while (0)

#define ck_assert_contains(text, part)                                                          \
	ck_assert_msg(strstr((text), (part)) != NULL, "\"%s\" does not contain \"%s\"", (text), \
	              (part))
#define ck_assert_lacks(text, part) \
	ck_assert_msg(strstr((text), (part)) == NULL, "\"%s\" contains \"%s\"", (text), (part))

#endif
