/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include <stdio.h>

#include "text.h"

START_TEST(text_character_valid)
{
	ck_assert_uint_eq(text_character(""), 0);
	ck_assert_uint_eq(text_character("a"), 1);
	ck_assert_uint_eq(text_character("\xc3\xa9"), 2);
	ck_assert_uint_eq(text_character("\xe2\x82\xac"), 3);
	ck_assert_uint_eq(text_character("\xf0\x9f\x98\x80"), 4);
	ck_assert_uint_eq(text_character("\xf4\x8f\xbf\xbf"), 4);
	ck_assert_uint_eq(text_character("\xed\x9f\xbf"), 3);
}
END_TEST

START_TEST(text_character_invalid)
{
	static const char *const broken[] = {
		"\x80",
		"\xbf",
		"\xc0\x80",
		"\xc1\xbf",
		"\xc3",
		"\xc3\x28",
		"\xe0\x80\x80",
		"\xe0\x9f\xbf",
		"\xed\xa0\x80",
		"\xed\xbf\xbf",
		"\xe2\x82",
		"\xe2\x28\xa1",
		"\xf0\x80\x80\x80",
		"\xf0\x8f\xbf\xbf",
		"\xf4\x90\x80\x80",
		"\xf5\x80\x80\x80",
		"\xff",
		"\xfe",
		"\xf0\x9f\x98",
		"\xf0\x9f",
	};

	for (size_t i = 0; i < COUNT_OF(broken); i++)
		ck_assert_msg(text_character(broken[i]) == 0, "row %zu", i);
}
END_TEST

/* The length of the character at text by the other decoder; 0 if there is none. */
static size_t length_by_decoder(const char *text)
{
	for (size_t length = 1; length <= 4; length++) {
		char alone[5] = "";

		memcpy(alone, text, length);
		if (unit_is_utf8(alone))
			return length;
	}
	return 0;
}

START_TEST(text_character_agrees_with_decoder)
{
	for (unsigned a = 1; a < 256; a++) {
		for (unsigned b = 1; b < 256; b++) {
			const char text[] = { (char)a, (char)b, '\xa0', '\xa0', 0 };

			if (text_character(text) != length_by_decoder(text))
				ck_abort_msg("bytes %02x %02x", a, b);
		}
	}
}
END_TEST

START_TEST(text_copy_fits)
{
	char target[8];

	text_copy(target, sizeof(target), "abc");
	ck_assert_str_eq(target, "abc");
	text_copy(target, sizeof(target), "1234567");
	ck_assert_str_eq(target, "1234567");
	text_copy(target, sizeof(target), NULL);
	ck_assert_str_eq(target, "");
	text_copy(target, sizeof(target), "");
	ck_assert_str_eq(target, "");
}
END_TEST

START_TEST(text_copy_cuts_at_character)
{
	char target[8];

	for (size_t capacity = 1; capacity <= sizeof(target); capacity++) {
		text_copy(target, capacity, "\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac");
		ck_assert_uint_eq(strlen(target), (capacity - 1) / 3 * 3);
		ck_assert(unit_is_utf8(target));
		text_copy(target, capacity, "a\xf0\x9f\x98\x80z");
		ck_assert(unit_is_utf8(target));
	}
}
END_TEST

START_TEST(text_copy_drops_newlines)
{
	char target[8];

	text_copy(target, sizeof(target), "ab\n\n");
	ck_assert_str_eq(target, "ab");
	text_copy(target, sizeof(target), "\n\n\n");
	ck_assert_str_eq(target, "");
	text_copy(target, sizeof(target), "a\nb");
	ck_assert_str_eq(target, "a\nb");
}
END_TEST

START_TEST(text_copy_drops_character_cut_by_formatter)
{
	static const char *const cut[] = { "ab\xc3",         "ab\xe2",     "ab\xe2\x82",
		                           "ab\xf0\x9f\x98", "ab\xf0\x9f", "ab\xf0" };
	char target[16];

	for (size_t i = 0; i < COUNT_OF(cut); i++) {
		text_copy(target, sizeof(target), cut[i]);
		ck_assert_str_eq(target, "ab");
	}
	text_copy(target, sizeof(target), "ab\xc3\xa9");
	ck_assert_str_eq(target, "ab\xc3\xa9");
}
END_TEST

START_TEST(text_make_valid_replaces_bytes)
{
	static const struct {
		const char *from, *to;
	} rows[] = {
		{ "", "" },
		{ "plain", "plain" },
		{ "caf\xc3\xa9 \xf0\x9f\x98\x80", "caf\xc3\xa9 \xf0\x9f\x98\x80" },
		{ "caf\xe9", "caf?" },
		{ "\xe9t\xe9", "?t?" },
		{ "\xff\xfe\xc3", "???" },
		{ "\xed\xa0\x80z", "???z" },
		{ "\xe2\x82\xc3\xa9", "??\xc3\xa9" },
	};
	char text[32];

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		snprintf(text, sizeof(text), "%s", rows[i].from);
		text_make_valid(text);
		ck_assert_str_eq(text, rows[i].to);
	}
}
END_TEST

START_TEST(text_copy_onto_itself)
{
	char target[16] = "over\xe2\x82\n";

	text_copy(target, sizeof(target), target);
	ck_assert_str_eq(target, "over");
}
END_TEST

int main(void)
{
	const TTest *tests[] = { text_character_valid,
		                 text_character_invalid,
		                 text_character_agrees_with_decoder,
		                 text_copy_fits,
		                 text_copy_cuts_at_character,
		                 text_copy_drops_newlines,
		                 text_copy_drops_character_cut_by_formatter,
		                 text_copy_onto_itself,
		                 text_make_valid_replaces_bytes,
		                 NULL };

	return unit_run("text", tests);
}
