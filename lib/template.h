/* SPDX-License-Identifier: MIT */
/* SQL texts with @tokens@ for names, and what the tokens stand for under the current options. */
#ifndef QRET_LIB_TEMPLATE_H
#define QRET_LIB_TEMPLATE_H

#include <stdbool.h>
#include <stdint.h>

#include "options.h"

#define SCHEMA_VERSION 1 /* of every part that this library installs */

struct template_name {
	const char *token; /* without the @ signs */
	const char *value; /* as it goes into the text, quoted */
};

/*
 * A new string with every @token@ replaced; NULL when out of memory. `names` ends with a NULL
 * token. What looks like a token but is none stays as it is.
 */
char *template_expand(const char *text, const struct template_name *names);

/* The names of the options' schemas, tables and role, quoted. NULL when out of memory. */
struct template_names;
struct template_names *template_names_new(const struct options *options);
void template_names_free(struct template_names *names);
const struct template_name *template_names_list(const struct template_names *names);

/*
 * Adds the tokens of one part: part (its schema, quoted), part_literal. Valid after
 * template_names_new.
 */
void template_names_set_part(struct template_names *names, const char *schema);

/* Whether the outbox tables are a host's own. */
bool template_names_foreign_tables(const struct options *options);

#endif
