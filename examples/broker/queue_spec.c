/* SPDX-License-Identifier: MIT */
/* Reads what `--queue` says: NAME[*COPIES][,KEY=VALUE...]. */
#include "broker.h"
#include "text.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

__attribute__((format(printf, 2, 3))) static int fail(char *error, const char *format, ...)
{
	va_list values;

	va_start(values, format);
	vsnprintf(error, ARGUMENT_ERROR_SIZE, format, values);
	va_end(values);
	return -1;
}

static int parse_group(const char *text, struct queue_spec *spec, char *error)
{
	static const char *const modes[] = { "fast", "slow", "absent" };
	const char *colon = strchr(text, ':');
	size_t length = colon ? (size_t)(colon - text) : strlen(text);
	struct group *group = &spec->groups[spec->group_count];

	if (spec->group_count == GROUP_MOST || length == 0 || length >= NAME_SIZE)
		return fail(error,
		            "--queue: at most 4 groups, each with a short name, not \"%.40s\"",
		            text);
	memcpy(group->name, text, length);
	group->name[length] = '\0';
	group->mode = GROUP_FAST;
	for (size_t i = 0; colon && i < 3; i++)
		if (strcmp(colon + 1, modes[i]) == 0) {
			group->mode = (enum group_mode)i;
			colon = NULL;
		}
	if (colon)
		return fail(error, "--queue: a group is fast, slow or absent, not \"%.40s\"",
		            colon + 1);
	spec->group_count++;
	return 0;
}

static int parse_groups(char *text, struct queue_spec *spec, char *error)
{
	char *rest = NULL;

	for (char *word = strtok_r(text, "+", &rest); word; word = strtok_r(NULL, "+", &rest))
		if (parse_group(word, spec, error) < 0)
			return -1;
	return 0;
}

static int parse_pair(char *pair, struct queue_spec *spec, char *error)
{
	const struct {
		const char *key;
		int *into;
	} numbers[] = {
		{ "partitions", &spec->partitions }, { "retention", &spec->retention },
		{ "completed", &spec->completed },   { "max_wait", &spec->max_wait },
		{ "dedup", &spec->dedup },
	};
	char *value = strchr(pair, '=');
	int64_t number;

	if (value == NULL)
		return fail(error, "--queue: \"%.40s\" is no KEY=VALUE", pair);
	*value++ = '\0';
	if (strcmp(pair, "groups") == 0)
		return parse_groups(value, spec, error);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		if (strcmp(pair, numbers[i].key) != 0)
			continue;
		if (text_parse_integer(value, 0, INT32_MAX, &number) < 0)
			return fail(error, "--queue: %.40s takes a whole number", pair);
		*numbers[i].into = (int)number;
		return 0;
	}
	return fail(error, "--queue: unknown key \"%.40s\"", pair);
}

static int parse_name(char *word, struct queue_spec *spec, char *error)
{
	char *star = strchr(word, '*');
	int64_t copies = 0;

	if (star) {
		*star++ = '\0';
		if (text_parse_integer(star, 1, 100000, &copies) < 0)
			return fail(error, "--queue: %.40s*N takes N from 1 to 100000", word);
	}
	if (word[0] == '\0' || strlen(word) >= NAME_SIZE)
		return fail(error, "--queue: the name has 1 to 63 bytes");
	memcpy(spec->name, word, strlen(word) + 1);
	spec->copies = (int)copies;
	return 0;
}

int queue_spec_parse(const char *text, struct queue_spec *ret_spec,
                     char ret_error[ARGUMENT_ERROR_SIZE])
{
	struct queue_spec spec = { .partitions = 1 };
	char *copy = strdup(text);
	char *rest = NULL;
	char *word = copy ? strtok_r(copy, ",", &rest) : NULL;
	int rc = word ? parse_name(word, &spec, ret_error)
	              : fail(ret_error, "--queue: a name is missing");

	while (rc == 0 && (word = strtok_r(NULL, ",", &rest)) != NULL)
		rc = parse_pair(word, &spec, ret_error);
	free(copy);
	if (rc == 0)
		*ret_spec = spec;
	return rc;
}
