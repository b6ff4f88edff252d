/* SPDX-License-Identifier: MIT */
/* Names of every kind: what is accepted quotes into exactly one token, from which the name can be read back. */
#include "fuzz.h"
#include "identifier.h"

/* Reads one quoted token the way the server does; returns what follows it. */
static const char *unquote(const char *text, char mark, char *ret_name)
{
	bool escapes = mark == '\'' && *text == 'E';

	text += escapes;
	FUZZ_REQUIRE(*text++ == mark);
	for (;;) {
		if (*text == mark && text[1] != mark)
			break;
		FUZZ_REQUIRE(*text != '\0');
		text += *text == mark || (escapes && *text == '\\');
		*ret_name++ = *text++;
	}
	*ret_name = '\0';
	return text + 1;
}

static void try_identifier(const char *name)
{
	char quoted[RELATION_QUOTED_BYTES], read[RELATION_QUOTED_BYTES];

	if (!identifier_is_valid(name))
		return;
	FUZZ_REQUIRE(strlen(name) <= IDENTIFIER_BYTES && name[0] != '\0' && fuzz_is_utf8(name));
	identifier_quote(name, quoted);
	FUZZ_REQUIRE(*unquote(quoted, '"', read) == '\0' && strcmp(read, name) == 0);
	literal_quote(name, quoted);
	FUZZ_REQUIRE(*unquote(quoted, '\'', read) == '\0' && strcmp(read, name) == 0);
}

static void try_relation(const char *name)
{
	char quoted[RELATION_QUOTED_BYTES], schema[RELATION_QUOTED_BYTES],
		table[RELATION_QUOTED_BYTES];
	char again[RELATION_QUOTED_BYTES], literal[2 * RELATION_QUOTED_BYTES + 8];
	const char *rest;

	if (!relation_is_valid(name))
		return;
	relation_quote(name, "public", quoted);
	FUZZ_REQUIRE(strlen(quoted) < sizeof(quoted));
	rest = unquote(quoted, '"', schema);
	FUZZ_REQUIRE(*rest == '.');
	FUZZ_REQUIRE(*unquote(rest + 1, '"', table) == '\0');
	FUZZ_REQUIRE(identifier_is_valid(schema) && identifier_is_valid(table));
	/* The quoted form means itself. */
	FUZZ_REQUIRE(relation_is_valid(quoted));
	relation_quote(quoted, "other", again);
	FUZZ_REQUIRE(strcmp(quoted, again) == 0);
	literal_quote(quoted, literal);
	FUZZ_REQUIRE(*unquote(literal, '\'', again) == '\0' && strcmp(again, quoted) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *name = fuzz_text(data, size, 0);

	try_identifier(name);
	try_relation(name);
	free(name);
	return 0;
}
