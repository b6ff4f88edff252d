/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include <stdio.h>

#include "error.h"

START_TEST(error_own)
{
	struct error error;

	ck_assert_int_eq(error_set(&error, QRET_ERR_STATE, false, "do that", "broken %d", 7),
	                 QRET_ERR_STATE);
	ck_assert_int_eq(error.code, QRET_ERR_STATE);
	ck_assert(!error.retryable);
	ck_assert_str_eq(error.message, "broken 7");
	ck_assert_str_eq(error.hint, "do that");
	ck_assert_str_eq(error.sqlstate, "");
	error_set(&error, QRET_ERR_NOMEM, true, NULL, "out");
	ck_assert(error.retryable);
	ck_assert_str_eq(error.hint, "");
	error_clear(&error);
	ck_assert_int_eq(error.code, QRET_DONE);
	ck_assert_str_eq(error.message, "");
	ck_assert(!error.retryable);
}
END_TEST

START_TEST(error_server_class_decides)
{
	struct error error;

	ck_assert_int_eq(error_set_server(&error, "42501", "permission denied for table x", NULL),
	                 QRET_ERR_PRIVILEGE);
	ck_assert(!error.retryable);
	ck_assert_str_eq(error.sqlstate, "42501");
	ck_assert_contains(error.hint, "grant");
	ck_assert_int_eq(error_set_server(&error, "40P01", "deadlock detected\n", ""),
	                 QRET_ERR_SQL);
	ck_assert(error.retryable);
	ck_assert_str_eq(error.message, "deadlock detected");
}
END_TEST

/* The server's own hint knows more than our table. */
START_TEST(error_server_hint_wins)
{
	struct error error;

	error_set_server(&error, "42883", "no function", "add a cast");
	ck_assert_str_eq(error.hint, "add a cast");
}
END_TEST

START_TEST(error_long_text_is_cut_at_character)
{
	struct error error;
	char text[4096] = "";

	for (int i = 0; i < 1000; i++)
		strcat(text, "\xe2\x82\xac");
	for (int shift = 0; shift < 3; shift++) {
		error_set(&error, QRET_ERR_SQL, false, text + 3 * shift, "%.*s%s", shift, "abc",
		          text);
		ck_assert(unit_is_utf8(error.message));
		ck_assert(unit_is_utf8(error.hint));
		ck_assert_uint_ge(strlen(error.message), sizeof(error.message) - 4);
		error_set_server(&error, "XX000", text, text);
		ck_assert(unit_is_utf8(error.message));
	}
	error_set_server(&error, "too long for a state", "x", NULL);
	ck_assert_uint_eq(strlen(error.sqlstate), 5);
}
END_TEST

START_TEST(error_prefixed)
{
	struct error error;
	char text[1024];

	error_set(&error, QRET_ERR_SQL, false, NULL, "went wrong");
	error_prefix(&error, "log/x.sql");
	ck_assert_str_eq(error.message, "log/x.sql: went wrong");
	memset(text, 'm', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	error_set(&error, QRET_ERR_SQL, false, NULL, "%s", text);
	error_prefix(&error, "where");
	ck_assert_int_eq(strncmp(error.message, "where: mmm", 10), 0);
	ck_assert_uint_eq(strlen(error.message), sizeof(error.message) - 1);
}
END_TEST

/* Each constant has a phrase of its own; what is unknown says which kind it is. */
START_TEST(error_strerror)
{
	for (int a = QRET_ERR_LEADER_LOST; a <= QRET_BUDGET; a++) {
		ck_assert_str_ne(qret_strerror(a), "unknown error");
		ck_assert_str_ne(qret_strerror(a), "unknown outcome");
		for (int b = a + 1; b <= QRET_BUDGET; b++)
			ck_assert_str_ne(qret_strerror(a), qret_strerror(b));
	}
	ck_assert_str_eq(qret_strerror(9999), "unknown outcome");
	ck_assert_str_eq(qret_strerror(-9999), "unknown error");
	ck_assert_str_eq(qret_strerror(INT32_MIN), "unknown error");
}
END_TEST

int main(void)
{
	const TTest *tests[] = { error_own,
		                 error_server_class_decides,
		                 error_server_hint_wins,
		                 error_long_text_is_cut_at_character,
		                 error_prefixed,
		                 error_strerror,
		                 NULL };

	return unit_run("error", tests);
}
