/* SPDX-License-Identifier: MIT */
/*
 * Fills names into SQL texts. Only names go in this way, and each is quoted; values are
 * parameters.
 */
#include "template.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "identifier.h"

#define VALUE_BYTES (2 * RELATION_QUOTED_BYTES + 8)
#define NAMES_MAX   24

struct template_names {
	struct template_name list[NAMES_MAX + 1];
	char values[NAMES_MAX][VALUE_BYTES];
	int count;
};

static const struct template_name *find(const struct template_name *names, const char *at,
                                        size_t *ret_length)
{
	for (; names->token != NULL; names++) {
		size_t length = strlen(names->token);

		if (strncmp(at + 1, names->token, length) == 0 && at[1 + length] == '@') {
			*ret_length = length + 2;
			return names;
		}
	}
	return NULL;
}

/* Writes the expansion into target unless it is NULL; returns its length. */
static size_t expand(const char *text, const struct template_name *names, char *target)
{
	size_t total = 0;

	while (*text != '\0') {
		size_t taken = *text == '@' ? 1 : strcspn(text, "@"), length = taken;
		const char *source = text;
		const struct template_name *name = *text == '@' ? find(names, text, &taken) : NULL;

		if (name != NULL) {
			source = name->value;
			length = strlen(source);
		}
		if (target != NULL)
			memcpy(target + total, source, length);
		total += length;
		text += taken;
	}
	return total;
}

char *template_expand(const char *text, const struct template_name *names)
{
	size_t length = expand(text, names, NULL);
	char *expanded = malloc(length + 1);

	if (expanded == NULL)
		return NULL;
	expand(text, names, expanded);
	expanded[length] = '\0';
	return expanded;
}

static char *add(struct template_names *names, const char *token)
{
	int index = names->count++;

	names->list[index].token = token;
	names->list[index].value = names->values[index];
	return names->values[index];
}

static void add_schema(struct template_names *names, const char *token, const char *literal_token,
                       const char *schema)
{
	identifier_quote(schema, add(names, token));
	literal_quote(schema, add(names, literal_token));
}

/* A host's relation, or ours in the outbox schema. */
static void add_relation(struct template_names *names, const char *token, const char *literal_token,
                         const struct options *options, enum option option, const char *own_table)
{
	const char *theirs = option_text(options, option);
	char *quoted = add(names, token);

	if (theirs[0] != '\0')
		relation_quote(theirs, "public", quoted);
	else
		relation_quote(own_table, option_text(options, OPTION_EVENT_SCHEMA), quoted);
	literal_quote(quoted, add(names, literal_token));
}

/* FNV-1a. */
static uint32_t hash(const char *text, uint32_t seed)
{
	for (; *text != '\0'; text++)
		seed = (seed ^ (unsigned char)*text) * 16777619u;
	return seed;
}

/*
 * What sets the names of our indexes on a host's tables apart from those on other tables of the same
 * schema. Our own tables have a schema to themselves, and need nothing.
 */
static void add_suffix(struct template_names *names, const struct options *options)
{
	char *suffix = add(names, "suffix");
	uint32_t id = hash(option_text(options, OPTION_DELIVERY_TABLE),
	                   hash(option_text(options, OPTION_EVENT_TABLE), 2166136261u));

	suffix[0] = '\0';
	if (template_names_foreign_tables(options))
		snprintf(suffix, VALUE_BYTES, "_%08x", (unsigned)id);
	literal_quote(suffix, add(names, "suffix_literal"));
}

struct template_names *template_names_new(const struct options *options)
{
	struct template_names *names = calloc(1, sizeof(*names));
	const char *role = option_text(options, OPTION_GRANT_ROLE);

	if (names == NULL)
		return NULL;
	add_schema(names, "log", "log_literal", option_text(options, OPTION_LOG_SCHEMA));
	add_schema(names, "streams", "streams_literal",
	           option_text(options, OPTION_STREAMS_SCHEMA));
	add_schema(names, "event", "event_literal", option_text(options, OPTION_EVENT_SCHEMA));
	/* One lease for all that an instance sweeps: beside the log where there is one. */
	add_schema(names, "lease", "lease_literal",
	           option_text(options, option_number(options, OPTION_ENGINES) == ENGINES_EVENT
	                                        ? OPTION_EVENT_SCHEMA
	                                        : OPTION_LOG_SCHEMA));
	add_relation(names, "event_table", "event_table_literal", options, OPTION_EVENT_TABLE,
	             "event");
	add_relation(names, "delivery_table", "delivery_table_literal", options,
	             OPTION_DELIVERY_TABLE, "delivery");
	add_relation(names, "success_table", "success_table_literal", options, OPTION_SUCCESS_TABLE,
	             "receiver_last_success");
	add_suffix(names, options);
	if (role[0] != '\0')
		literal_quote(role, add(names, "role_literal"));
	else
		strcpy(add(names, "role_literal"), "NULL");
	snprintf(add(names, "version"), VALUE_BYTES, "%d", SCHEMA_VERSION);
	return names;
}

void template_names_set_part(struct template_names *names, const char *schema)
{
	add_schema(names, "part", "part_literal", schema);
}

void template_names_free(struct template_names *names)
{
	free(names);
}

const struct template_name *template_names_list(const struct template_names *names)
{
	return names->list;
}

bool template_names_foreign_tables(const struct options *options)
{
	return option_text(options, OPTION_EVENT_TABLE)[0] != '\0' ||
	       option_text(options, OPTION_DELIVERY_TABLE)[0] != '\0' ||
	       option_text(options, OPTION_SUCCESS_TABLE)[0] != '\0';
}
