/* SPDX-License-Identifier: MIT */
/* B80: quotes, upper case, dots, the server's 63 bytes. */
#include "unit.h"

#include "identifier.h"

static const char *repeated(char c, size_t count)
{
	static char text[512];

	memset(text, c, count);
	text[count] = '\0';
	return text;
}

START_TEST(identifier_valid)
{
	ck_assert(identifier_is_valid("queen"));
	ck_assert(identifier_is_valid("We\"ird.Sch\xc3\xa9ma"));
	ck_assert(identifier_is_valid(" "));
	ck_assert(identifier_is_valid("@log@"));
	ck_assert(identifier_is_valid(repeated('x', 63)));
	/* 31 characters of two bytes and one: 63 bytes. */
	ck_assert(identifier_is_valid(
		"\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9"
		"\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9"
		"\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9x"));
}
END_TEST

/* Too long is refused: the server would cut it and another object would be meant. */
START_TEST(identifier_refused)
{
	ck_assert(!identifier_is_valid(""));
	ck_assert(!identifier_is_valid(repeated('x', 64)));
	ck_assert(!identifier_is_valid("\xff"));
	ck_assert(!identifier_is_valid("a\xc3"));
	ck_assert(!identifier_is_valid("a$qretention$b"));
}
END_TEST

START_TEST(identifier_quoted)
{
	char quoted[RELATION_QUOTED_BYTES];

	identifier_quote("queen", quoted);
	ck_assert_str_eq(quoted, "\"queen\"");
	identifier_quote("a\"b", quoted);
	ck_assert_str_eq(quoted, "\"a\"\"b\"");
	identifier_quote("\"; DROP TABLE x; --", quoted);
	ck_assert_str_eq(quoted, "\"\"\"; DROP TABLE x; --\"");
	identifier_quote(repeated('"', 63), quoted);
	ck_assert_uint_eq(strlen(quoted), 128);
}
END_TEST

START_TEST(literal_quoted)
{
	char quoted[2 * RELATION_QUOTED_BYTES + 8];

	literal_quote("queen", quoted);
	ck_assert_str_eq(quoted, "'queen'");
	literal_quote("o'clock", quoted);
	ck_assert_str_eq(quoted, "'o''clock'");
	literal_quote("", quoted);
	ck_assert_str_eq(quoted, "''");
}
END_TEST

/* With standard_conforming_strings off, a plain literal would read the backslash as an escape. */
START_TEST(literal_backslash_is_escaped)
{
	char quoted[2 * RELATION_QUOTED_BYTES + 8];

	literal_quote("a\\'b", quoted);
	ck_assert_str_eq(quoted, "E'a\\\\''b'");
}
END_TEST

START_TEST(relation_valid)
{
	static const char *const valid[] = {
		"event",        "app.event", "\"app\".event", "app.\"ev.ent\"", "\"a\"\"b\".\"c\"",
		"Schema.Table", "a b.c d",
	};

	for (size_t i = 0; i < COUNT_OF(valid); i++)
		ck_assert_msg(relation_is_valid(valid[i]), "%s", valid[i]);
}
END_TEST

START_TEST(relation_refused)
{
	static const char *const refused[] = {
		"",     ".",    "a.",     ".a",      "a.b.c", "\"a",       "\"a\"b",
		"a\"b", "\"\"", "\"a\".", "\"a\"\"", "a.\"b", "\"a\".b\"", "\xff.a",
	};

	for (size_t i = 0; i < COUNT_OF(refused); i++)
		ck_assert_msg(!relation_is_valid(refused[i]), "%s", refused[i]);
	ck_assert(!relation_is_valid(repeated('x', 64)));
	ck_assert(!relation_is_valid(repeated('x', 500)));
	ck_assert(!relation_is_valid(repeated('"', 500)));
}
END_TEST

START_TEST(relation_quoted)
{
	char quoted[RELATION_QUOTED_BYTES];

	relation_quote("event", "outbox", quoted);
	ck_assert_str_eq(quoted, "\"outbox\".\"event\"");
	relation_quote("app.event", "outbox", quoted);
	ck_assert_str_eq(quoted, "\"app\".\"event\"");
	relation_quote("\"a.\"\"b\".\"c\"", "outbox", quoted);
	ck_assert_str_eq(quoted, "\"a.\"\"b\".\"c\"");
	/* Taken as written: nothing is folded to lower case. */
	relation_quote("App.Event", "outbox", quoted);
	ck_assert_str_eq(quoted, "\"App\".\"Event\"");
}
END_TEST

START_TEST(relation_longest_fits)
{
	char name[300] = "\"", quoted[RELATION_QUOTED_BYTES];

	strcat(name, repeated('"', 126));
	strcat(name, "\".\"");
	strcat(name, repeated('"', 126));
	strcat(name, "\"");
	ck_assert(relation_is_valid(name));
	relation_quote(name, "outbox", quoted);
	ck_assert_str_eq(quoted, name);
	ck_assert_uint_eq(strlen(quoted), sizeof(quoted) - 1);
}
END_TEST

int main(void)
{
	const TTest *tests[] = { identifier_valid,
		                 identifier_refused,
		                 identifier_quoted,
		                 literal_quoted,
		                 literal_backslash_is_escaped,
		                 relation_valid,
		                 relation_refused,
		                 relation_quoted,
		                 relation_longest_fits,
		                 NULL };

	return unit_run("identifier", tests);
}
