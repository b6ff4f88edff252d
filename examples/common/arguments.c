/* SPDX-License-Identifier: MIT */
/* Command lines from tables. */
#include "arguments.h"
#include "text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define HELP_COLUMN 26

struct parser {
	const struct argument_group *groups;
	size_t group_count;
	char *error;
	char **next; /* the word after the one being read */
};

struct found {
	const struct argument *argument;
	void *into;
};

int argument_list_add(struct argument_list *list, const char *item)
{
	const char **items = realloc(list->items, (list->count + 1) * sizeof(*items));

	if (items == NULL)
		return -1;
	list->items = items;
	list->items[list->count++] = item;
	return 0;
}

static int found_at(const struct argument_group *group, const struct argument *argument,
                    struct found *ret_found)
{
	ret_found->argument = argument;
	ret_found->into = (char *)group->values + argument->offset;
	return 1;
}

static int find_name(const struct parser *parser, const char *name, size_t length,
                     struct found *ret_found)
{
	for (size_t i = 0; i < parser->group_count; i++)
		for (const struct argument *row = parser->groups[i].table; row->name; row++)
			if (strlen(row->name) == length && strncmp(row->name, name, length) == 0)
				return found_at(&parser->groups[i], row, ret_found);
	return 0;
}

static int find_letter(const struct parser *parser, char letter, struct found *ret_found)
{
	for (size_t i = 0; i < parser->group_count; i++)
		for (const struct argument *row = parser->groups[i].table; row->name; row++)
			if (row->letter == letter)
				return found_at(&parser->groups[i], row, ret_found);
	return 0;
}

__attribute__((format(printf, 2, 3))) static int fail(const struct parser *parser,
                                                      const char *format, ...)
{
	va_list values;

	va_start(values, format);
	vsnprintf(parser->error, ARGUMENT_ERROR_SIZE, format, values);
	va_end(values);
	return -1;
}

static int store_integer(const struct parser *parser, const struct found *found, const char *value)
{
	const struct argument *row = found->argument;
	struct argument_integer *into = found->into;

	if (text_parse_integer(value, row->minimum, row->maximum, &into->value) < 0) {
		snprintf(parser->error, ARGUMENT_ERROR_SIZE,
		         "--%s takes a whole number from %" PRId64 " to %" PRId64 ", not \"%.30s\"",
		         row->name, row->minimum, row->maximum, value);
		return -1;
	}
	into->given = 1;
	return 0;
}

/* value: what follows it on the command line; NULL for those that take none. */
static int store(const struct parser *parser, const struct found *found, const char *value)
{
	switch (found->argument->kind) {
	case ARGUMENT_FLAG:
		*(int *)found->into = 1;
		return 0;
	case ARGUMENT_COUNT:
		++*(int *)found->into;
		return 0;
	case ARGUMENT_TEXT:
		*(const char **)found->into = value;
		return 0;
	case ARGUMENT_INTEGER:
		return store_integer(parser, found, value);
	case ARGUMENT_LIST:
		if (argument_list_add(found->into, value) < 0)
			return fail(parser, "out of memory");
		return 0;
	}
	return 0;
}

static int takes_value(const struct found *found)
{
	return found->argument->value_name != NULL;
}

static int parse_long(struct parser *parser, const char *word)
{
	const char *equals = strchr(word, '=');
	size_t length = equals ? (size_t)(equals - word) : strlen(word);
	struct found found;

	if (!find_name(parser, word, length, &found)) {
		snprintf(parser->error, ARGUMENT_ERROR_SIZE, "unknown option --%.*s",
		         length > 60 ? 60 : (int)length, word);
		return -1;
	}
	if (!takes_value(&found))
		return equals ? fail(parser, "--%s takes no value", found.argument->name)
		              : store(parser, &found, NULL);
	if (equals)
		return store(parser, &found, equals + 1);
	if (*parser->next == NULL)
		return fail(parser, "--%s needs a value", found.argument->name);
	return store(parser, &found, *parser->next++);
}

/* One or more letters; the first that takes a value takes the rest, or the next word. */
static int parse_letters(struct parser *parser, const char *word)
{
	struct found found;

	for (; *word != '\0'; word++) {
		char letter[2] = { *word, '\0' };

		if (!find_letter(parser, *word, &found))
			return fail(parser, "unknown option -%s", letter);
		if (takes_value(&found)) {
			if (word[1] != '\0')
				return store(parser, &found, word + 1);
			if (*parser->next == NULL)
				return fail(parser, "-%s needs a value", letter);
			return store(parser, &found, *parser->next++);
		}
		if (store(parser, &found, NULL) < 0)
			return -1;
	}
	return 0;
}

static int parse_word(struct parser *parser, const char *word, struct argument_list *words)
{
	if (word[0] == '-' && word[1] == '-')
		return parse_long(parser, word + 2);
	if (word[0] == '-' && word[1] != '\0')
		return parse_letters(parser, word + 1);
	if (argument_list_add(words, word) < 0)
		return fail(parser, "out of memory");
	return 0;
}

int arguments_parse(int argc, char **argv, const struct argument_group *groups, size_t group_count,
                    struct argument_list *ret_words, char ret_error[ARGUMENT_ERROR_SIZE])
{
	struct parser parser = { groups, group_count, ret_error, argv + (argc > 0) };
	int options_ended = 0;

	while (*parser.next != NULL) {
		const char *word = *parser.next++;

		if (!options_ended && strcmp(word, "--") == 0) {
			options_ended = 1;
			continue;
		}
		if (options_ended) {
			if (argument_list_add(ret_words, word) < 0)
				return fail(&parser, "out of memory");
		} else if (parse_word(&parser, word, ret_words) < 0) {
			return -1;
		}
	}
	return 0;
}

static int name_takes_next(const struct argument *table, const char *name)
{
	for (const struct argument *row = table; row->name; row++)
		if (strcmp(row->name, name) == 0)
			return row->value_name != NULL;
	return 0;
}

static const struct argument *row_of_letter(const struct argument *table, char letter)
{
	for (const struct argument *row = table; row->name; row++)
		if (row->letter == letter)
			return row;
	return NULL;
}

int argument_takes_next(const struct argument *table, const char *word)
{
	if (word[0] != '-' || word[1] == '\0')
		return 0;
	if (word[1] == '-')
		return name_takes_next(table, word + 2);
	while (*++word != '\0') {
		const struct argument *row = row_of_letter(table, *word);

		if (row != NULL && row->value_name != NULL)
			return word[1] == '\0';
	}
	return 0;
}

void arguments_free(const struct argument_group *groups, size_t group_count,
                    struct argument_list *words)
{
	for (size_t i = 0; i < group_count; i++) {
		for (const struct argument *row = groups[i].table; row->name; row++) {
			void *into = (char *)groups[i].values + row->offset;

			if (row->kind == ARGUMENT_LIST)
				free(((struct argument_list *)into)->items);
		}
	}
	free(words->items);
}

void arguments_help(FILE *stream, const struct argument *table)
{
	for (const struct argument *row = table; row->name; row++) {
		int column;

		if (row->letter)
			column = fprintf(stream, "  -%c, --%s", row->letter, row->name);
		else
			column = fprintf(stream, "      --%s", row->name);
		if (row->value_name)
			column += fprintf(stream, " %s", row->value_name);
		if (column >= HELP_COLUMN) {
			putc('\n', stream);
			column = 0;
		}
		text_wrap(stream, row->help, HELP_COLUMN, column);
	}
}
