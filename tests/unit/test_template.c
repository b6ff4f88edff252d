/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include <stdlib.h>

#include "identifier.h"
#include "sql_embedded.h"
#include "statement.h"
#include "template.h"

static void assert_expands(const char *text, const char *expected)
{
	static const struct template_name names[] = {
		{ "log", "\"queen\"" }, { "log_literal", "'queen'" },
		{ "empty", "" },        { "tricky", "@log@" },
		{ NULL, NULL },
	};
	char *expanded = template_expand(text, names);

	ck_assert_str_eq(expanded, expected);
	free(expanded);
}

START_TEST(template_expanded)
{
	assert_expands("", "");
	assert_expands("plain", "plain");
	assert_expands("@log@.t", "\"queen\".t");
	assert_expands("@log@@log_literal@", "\"queen\"'queen'");
	assert_expands("a@empty@b", "ab");
}
END_TEST

/* A value is never looked at again: a name cannot smuggle in another one. */
START_TEST(template_value_is_not_expanded)
{
	assert_expands("@tricky@", "@log@");
	assert_expands("@log@tricky@", "\"queen\"tricky@");
}
END_TEST

START_TEST(template_unknown_stays)
{
	assert_expands("@", "@");
	assert_expands("@@", "@@");
	assert_expands("@nope@", "@nope@");
	assert_expands("@log", "@log");
	assert_expands("@lo@", "@lo@");
	assert_expands("a @> b @log@", "a @> b \"queen\"");
	assert_expands("user@log@host", "user\"queen\"host");
}
END_TEST

/* No statement and no installed object keeps a token that nobody fills in. */
static void assert_no_token(const char *text)
{
	for (const char *at = strchr(text, '@'); at != NULL; at = strchr(at + 1, '@')) {
		size_t width = strspn(at + 1, "abcdefghijklmnopqrstuvwxyz_");

		ck_assert_msg(width == 0 || at[1 + width] != '@', "%.*s is left", (int)width + 2,
		              at);
	}
}

START_TEST(template_every_text_is_filled)
{
	static const struct sql_entry *const parts[] = { sql_install_broker, sql_install_log,
		                                         sql_install_event };
	struct template_names *names;
	struct statements statements = { 0 };
	struct options options;

	options_init(&options);
	names = template_names_new(&options);
	template_names_set_part(names, "queen");
	for (size_t part = 0; part < COUNT_OF(parts); part++) {
		for (const struct sql_entry *entry = parts[part]; entry->kind != NULL; entry++) {
			char *text = template_expand(entry->text, template_names_list(names));

			assert_no_token(text);
			free(text);
		}
	}
	template_names_free(names);
	ck_assert_int_eq(statements_build(&statements, &options), QRET_DONE);
	for (int i = 0; i < STATEMENT_COUNT; i++) {
		if (i != STATEMENT_METRICS_PURGE && i != STATEMENT_SCHEMA_VERSION &&
		    i != STATEMENT_INSTALL_OBJECT)
			assert_no_token(statements.texts[i]);
	}
	for (int i = 0; i < METRICS_TABLES; i++)
		assert_no_token(statements.metrics[i]);
	assert_no_token(statements.log_version);
	assert_no_token(statements.event_install);
	statements_free(&statements);
	options_free(&options);
}
END_TEST

static const char *value_of(const struct template_names *names, const char *token)
{
	for (const struct template_name *name = template_names_list(names); name->token != NULL;
	     name++) {
		if (strcmp(name->token, token) == 0)
			return name->value;
	}
	ck_abort_msg("no token %s", token);
	return NULL;
}

static void set(struct options *options, const char *name, const char *value)
{
	struct error error;
	bool clamped;

	ck_assert_int_eq(options_set(options, name, value, &clamped, &error), QRET_DONE);
}

START_TEST(template_names_are_quoted)
{
	struct template_names *names;
	struct options options;

	options_init(&options);
	set(&options, "log_schema", "We\"ird.Sch\xc3\xa9ma");
	set(&options, "streams_schema", "it's");
	set(&options, "event_table", "app.\"Ev\"\"ent\"");
	set(&options, "delivery_table", "delivery_of_mine");
	set(&options, "grant_role", "o'role");
	names = template_names_new(&options);
	ck_assert_str_eq(value_of(names, "log"), "\"We\"\"ird.Sch\xc3\xa9ma\"");
	ck_assert_str_eq(value_of(names, "log_literal"), "'We\"ird.Sch\xc3\xa9ma'");
	ck_assert_str_eq(value_of(names, "streams"), "\"it's\"");
	ck_assert_str_eq(value_of(names, "streams_literal"), "'it''s'");
	ck_assert_str_eq(value_of(names, "event_table"), "\"app\".\"Ev\"\"ent\"");
	ck_assert_str_eq(value_of(names, "event_table_literal"), "'\"app\".\"Ev\"\"ent\"'");
	ck_assert_str_eq(value_of(names, "delivery_table"), "\"public\".\"delivery_of_mine\"");
	ck_assert_str_eq(value_of(names, "success_table"), "\"outbox\".\"receiver_last_success\"");
	ck_assert_str_eq(value_of(names, "role_literal"), "'o''role'");
	ck_assert(template_names_foreign_tables(&options));
	template_names_free(names);
	set(&options, "grant_role", NULL);
	set(&options, "event_table", NULL);
	set(&options, "delivery_table", "");
	names = template_names_new(&options);
	ck_assert_str_eq(value_of(names, "role_literal"), "NULL");
	ck_assert_str_eq(value_of(names, "event_table"), "\"outbox\".\"event\"");
	ck_assert(!template_names_foreign_tables(&options));
	template_names_free(names);
	options_free(&options);
}
END_TEST

/* The widest names there are, in every option at once. */
START_TEST(template_longest_names)
{
	static const char *const schemas[] = { "log_schema", "streams_schema", "event_schema",
		                               "grant_role" };
	static const char *const tables[] = { "event_table", "delivery_table", "success_table" };
	struct template_names *names;
	struct options options;
	char name[64], table[300] = "\"";

	for (int mark = 0; mark < 3; mark++) {
		memset(name, "'\"\\"[mark], 63);
		name[63] = '\0';
		memset(table, 0, sizeof(table));
		strcpy(table, "\"");
		for (int i = 0; i < 63; i++)
			strcat(table, mark == 1 ? "\"\"" : mark == 0 ? "'" : "\\");
		strcat(table, "\".");
		memcpy(table + strlen(table), table, strlen(table) - 1);
		options_init(&options);
		for (size_t i = 0; i < COUNT_OF(schemas); i++)
			set(&options, schemas[i], name);
		for (size_t i = 0; i < COUNT_OF(tables); i++)
			set(&options, tables[i], table);
		names = template_names_new(&options);
		template_names_set_part(names, name);
		ck_assert_uint_ge(strlen(value_of(names, "event_table_literal")), 2 * 63);
		ck_assert_uint_ge(strlen(value_of(names, "part_literal")), 65);
		template_names_free(names);
		options_free(&options);
	}
}
END_TEST

START_TEST(statements_follow_options)
{
	struct statements statements = { 0 };
	struct options options;

	options_init(&options);
	set(&options, "log_schema", "o\"ther");
	ck_assert_int_eq(statements_build(&statements, &options), QRET_DONE);
	ck_assert_contains(statements.texts[STATEMENT_WORKLIST_SCAN],
	                   "\"o\"\"ther\".log_partitions");
	ck_assert_contains(statements.metrics[0], "\"o\"\"ther\".\"worker_metrics\"");
	ck_assert_contains(statements.metrics[4], "\"timestamp\"");
	ck_assert_contains(statements.log_version, "\"o\"\"ther\".retention_schema");
	ck_assert_contains(statements.event_version, "\"outbox\".retention_schema");
	/* Built again over the old ones: nothing is lost, nothing mixed. */
	set(&options, "log_schema", NULL);
	ck_assert_int_eq(statements_build(&statements, &options), QRET_DONE);
	ck_assert_lacks(statements.texts[STATEMENT_WORKLIST_SCAN], "ther");
	statements_free(&statements);
	statements_free(&statements);
	options_free(&options);
}
END_TEST

int main(void)
{
	const TTest *tests[] = { template_expanded,         template_value_is_not_expanded,
		                 template_unknown_stays,    template_every_text_is_filled,
		                 template_names_are_quoted, template_longest_names,
		                 statements_follow_options, NULL };

	return unit_run("template", tests);
}
