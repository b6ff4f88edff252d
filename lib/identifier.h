/* SPDX-License-Identifier: MIT */
/* SQL identifiers: what is acceptable as one, and how it is quoted. Never pastes a value. */
#ifndef QRET_LIB_IDENTIFIER_H
#define QRET_LIB_IDENTIFIER_H

#include <stdbool.h>
#include <stddef.h>

#define IDENTIFIER_BYTES \
	63 /* NAMEDATALEN - 1: a longer one would be cut by the server, so it is refused */

/*
 * Room for any quoted, qualified relation: two identifiers of nothing but quotes, the dot, the
 * terminator.
 */
#define RELATION_QUOTED_BYTES (2 * (2 * IDENTIFIER_BYTES + 2) + 2)

/* Valid UTF-8, 1 to 63 bytes. */
bool identifier_is_valid(const char *name);

/* "table", "schema.table", each part plain (taken as written, no folding) or in double quotes. */
bool relation_is_valid(const char *name);

/* Writes "name" with quotes doubled; the target holds RELATION_QUOTED_BYTES. */
void identifier_quote(const char *name, char *ret_quoted);

/* Writes 'name' as a literal; the target holds RELATION_QUOTED_BYTES. */
void literal_quote(const char *text, char *ret_quoted);

/*
 * Writes the relation quoted and qualified; a missing schema becomes `schema`. The name is
 * valid.
 */
void relation_quote(const char *name, const char *schema, char *ret_quoted);

#endif
