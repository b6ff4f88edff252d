/* SPDX-License-Identifier: MIT */
/*
 * Quoting of SQL identifiers and literals, by doubling. Valid UTF-8 in, so no byte of a
 * character is a quote.
 */
#include "identifier.h"

#include <stdio.h>
#include <string.h>

#include "text.h"

static bool is_utf8(const char *text)
{
	while (*text != '\0') {
		size_t length = text_character(text);

		if (length == 0)
			return false;
		text += length;
	}
	return true;
}

bool identifier_is_valid(const char *name)
{
	size_t length = strlen(name);

	/* The dollar quote of our own function bodies must not be closed by a name inside them. */
	return length >= 1 && length <= IDENTIFIER_BYTES && is_utf8(name) &&
	       strstr(name, "$qretention$") == NULL;
}

/* Takes one part off the front of *at; false if it is malformed. */
static bool relation_part(const char **at, char *ret_part)
{
	size_t length = 0;
	bool quoted = **at == '"';

	if (quoted)
		(*at)++;
	for (;; (*at)++) {
		if (quoted && (*at)[0] == '"' && (*at)[1] == '"')
			(*at)++;
		else if (quoted && **at == '"')
			break;
		else if (!quoted && (**at == '.' || **at == '\0'))
			break;
		else if (**at == '\0' || (!quoted && **at == '"'))
			return false;
		if (length == IDENTIFIER_BYTES)
			return false;
		ret_part[length++] = **at;
	}
	if (quoted)
		(*at)++;
	ret_part[length] = '\0';
	return identifier_is_valid(ret_part);
}

/* Splits into schema ("" if none) and table; both hold IDENTIFIER_BYTES + 1. */
static bool relation_split(const char *name, char *ret_schema, char *ret_table)
{
	ret_schema[0] = '\0';
	if (!relation_part(&name, ret_table))
		return false;
	if (*name == '.') {
		name++;
		strcpy(ret_schema, ret_table);
		if (!relation_part(&name, ret_table))
			return false;
	}
	return *name == '\0';
}

bool relation_is_valid(const char *name)
{
	char schema[IDENTIFIER_BYTES + 1], table[IDENTIFIER_BYTES + 1];

	return relation_split(name, schema, table);
}

static char *quote_into(const char *text, char mark, char *target)
{
	*target++ = mark;
	for (; *text != '\0'; text++) {
		if (*text == mark)
			*target++ = mark;
		*target++ = *text;
	}
	*target++ = mark;
	*target = '\0';
	return target;
}

void identifier_quote(const char *name, char *ret_quoted)
{
	quote_into(name, '"', ret_quoted);
}

void literal_quote(const char *text, char *ret_quoted)
{
	/* An E'' literal means the same whatever standard_conforming_strings says. */
	if (strchr(text, '\\') != NULL) {
		*ret_quoted++ = 'E';
		*ret_quoted++ = '\'';
		for (; *text != '\0'; text++) {
			if (*text == '\'' || *text == '\\')
				*ret_quoted++ = *text;
			*ret_quoted++ = *text;
		}
		*ret_quoted++ = '\'';
		*ret_quoted = '\0';
		return;
	}
	quote_into(text, '\'', ret_quoted);
}

void relation_quote(const char *name, const char *schema, char *ret_quoted)
{
	char own_schema[IDENTIFIER_BYTES + 1], table[IDENTIFIER_BYTES + 1];

	if (!relation_split(name, own_schema, table))
		return;
	ret_quoted = quote_into(own_schema[0] != '\0' ? own_schema : schema, '"', ret_quoted);
	*ret_quoted++ = '.';
	quote_into(table, '"', ret_quoted);
}
