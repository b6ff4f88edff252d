/* SPDX-License-Identifier: MIT */
/* Parses, checks, stores and prints option values. What an option means is not known here. */
#include "options.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "identifier.h"
#include "qretention.h"
#include "struct_size.h"
#include "text.h"

enum kind { KIND_NUMBER, KIND_FLOOR, KIND_BOOL, KIND_CHOICE, KIND_NAME, KIND_RELATION, KIND_ROLE };

struct row {
	const char *name, *env;
	enum kind kind;
	int64_t scale, fallback, least, most;
	const char *fallback_text; /* as the user would write it */
	const char *range, *help;
};

static const struct row rows[OPTION_COUNT] = {
#define NUMBER(id, name, env, scale, fallback, least, most, help)                       \
	[OPTION_##id] = { name, env,       KIND_NUMBER,         scale, fallback, least, \
		          most, #fallback, #least " .. " #most, help },
#define FLOOR(id, name, env, scale, fallback, least, most, help)                        \
	[OPTION_##id] = { name, env,       KIND_FLOOR,          scale, fallback, least, \
		          most, #fallback, #least " .. " #most, help },
#define BOOL(id, name, env, fallback, help)               \
	[OPTION_##id] = { name,                           \
		          env,                            \
		          KIND_BOOL,                      \
		          1,                              \
		          fallback,                       \
		          0,                              \
		          1,                              \
		          fallback ? "true" : "false",    \
		          "true|false|1|0|yes|no|on|off", \
		          help },
#define CHOICE(id, name, fallback, values, help) \
	[OPTION_##id] = { name, "", KIND_CHOICE, 1, 0, 0, 0, fallback, values, help },
#define NAME(id, name, fallback, help)                                                           \
	[OPTION_##id] = {                                                                        \
		name, "", KIND_NAME, 1, 0, 0, 0, fallback, "one identifier, 1 to 63 bytes", help \
	},
#define RELATION(id, name, help)                                                                 \
	[OPTION_##id] = {                                                                        \
		name, "", KIND_RELATION, 1, 0, 0, 0, "", "table or schema.table, or empty", help \
	},
#define ROLE(id, name, help) \
	[OPTION_##id] = { name, "", KIND_ROLE, 1, 0, 0, 0, "", "one identifier, or empty", help },
#include "option_table.h"
};

static bool is_text(const struct row *row)
{
	return row->kind == KIND_NAME || row->kind == KIND_RELATION || row->kind == KIND_ROLE;
}

static const char *type_name(const struct row *row)
{
	switch (row->kind) {
	case KIND_BOOL:
		return "bool";
	case KIND_CHOICE:
		return "enum";
	case KIND_NUMBER:
	case KIND_FLOOR:
		return "int";
	default:
		return "text";
	}
}

/* The index of value in "first|second|...", or -1. */
static int64_t choice_index(const char *values, const char *value)
{
	size_t length = strlen(value);
	int64_t index = 0;

	for (const char *at = values;; index++) {
		size_t width = strcspn(at, "|");

		if (width == length && memcmp(at, value, length) == 0)
			return index;
		if (at[width] == '\0')
			return -1;
		at += width + 1;
	}
}

static void choice_copy(const char *values, int64_t index, char *target, size_t capacity)
{
	const char *at = values;

	while (index-- > 0)
		at += strcspn(at, "|") + 1;
	snprintf(target, capacity, "%.*s", (int)strcspn(at, "|"), at);
}

static bool parse_bool(const char *value, int64_t *ret_number)
{
	static const struct {
		const char *word;
		int64_t number;
	} words[] = {
		{ "true", 1 }, { "false", 0 }, { "1", 1 },  { "0", 0 },
		{ "yes", 1 },  { "no", 0 },    { "on", 1 }, { "off", 0 },
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcasecmp(value, words[i].word) == 0) {
			*ret_number = words[i].number;
			return true;
		}
	}
	return false;
}

/* Whole decimal numbers only: no spaces, no units, no fraction. Does not depend on the locale. */
static bool parse_number(const char *value, int64_t *ret_number)
{
	const char *digits = value[0] == '-' ? value + 1 : value;
	char *end;

	if (digits[0] == '\0' || strspn(digits, "0123456789") != strlen(digits))
		return false;
	errno = 0;
	*ret_number = strtoll(value, &end, 10);
	return errno == 0 && *end == '\0';
}

static int refuse(const struct row *row, const char *name, const char *value, struct error *error)
{
	char shown[96];

	/* A long value must not push the range out of the message. */
	text_copy(shown, sizeof(shown), value);
	return error_set(error, QRET_ERR_OPTION, false, row->help,
	                 "option %s: value \"%s\" is refused; expected %s", name, shown,
	                 row->range);
}

static bool parse_scaled(const struct row *row, const char *value, int64_t scale, bool *ret_clamped,
                         int64_t *ret_number)
{
	if (!parse_number(value, ret_number))
		return false;
	if (*ret_number > INT64_MAX / scale || *ret_number < INT64_MIN / scale)
		return false;
	*ret_number *= scale;
	if (row->kind == KIND_FLOOR && *ret_number < row->least) {
		*ret_number = row->least;
		*ret_clamped = true;
	}
	return *ret_number >= row->least && *ret_number <= row->most;
}

static bool parse_text(const struct row *row, const char *value)
{
	if (value[0] == '\0')
		return row->kind != KIND_NAME;
	return row->kind == KIND_RELATION ? relation_is_valid(value) : identifier_is_valid(value);
}

/* Parses without storing; text values are stored by the caller. */
static int parse(const struct row *row, const char *name, const char *value, int64_t scale,
                 bool *ret_clamped, int64_t *ret_number, struct error *error)
{
	bool good = false;

	*ret_clamped = false;
	switch (row->kind) {
	case KIND_NUMBER:
	case KIND_FLOOR:
		good = parse_scaled(row, value, scale, ret_clamped, ret_number);
		break;
	case KIND_BOOL:
		good = parse_bool(value, ret_number);
		break;
	case KIND_CHOICE:
		*ret_number = choice_index(row->range, value);
		good = *ret_number >= 0;
		break;
	default:
		good = parse_text(row, value);
	}
	return good ? QRET_DONE : refuse(row, name, value, error);
}

static int64_t default_number(const struct row *row)
{
	return row->kind == KIND_CHOICE ? choice_index(row->range, row->fallback_text)
	                                : row->fallback;
}

static enum option find(const char *name)
{
	enum option option = 0;

	while (option < OPTION_COUNT && strcmp(rows[option].name, name) != 0)
		option++;
	return option;
}

int options_init(struct options *options)
{
	memset(options, 0, sizeof(*options));
	for (enum option option = 0; option < OPTION_COUNT; option++)
		options->number[option] = default_number(&rows[option]);
	return QRET_DONE;
}

void options_free(struct options *options)
{
	for (enum option option = 0; option < OPTION_COUNT; option++)
		free(options->text[option]);
}

int64_t option_number(const struct options *options, enum option option)
{
	return options->number[option];
}

const char *option_text(const struct options *options, enum option option)
{
	return options->text[option] != NULL ? options->text[option] : rows[option].fallback_text;
}

bool option_changes_statements(const char *name)
{
	enum option option = find(name);

	/* The lease lies where the engines are. */
	return option != OPTION_COUNT && (is_text(&rows[option]) || option == OPTION_ENGINES);
}

const char *option_name(enum option option)
{
	return rows[option].name;
}

int options_set(struct options *options, const char *name, const char *value, bool *ret_clamped,
                struct error *error)
{
	enum option option = find(name);
	const struct row *row;
	int64_t number = 0;
	char *text = NULL;
	int rc;

	*ret_clamped = false;
	if (option == OPTION_COUNT)
		return error_set(error, QRET_ERR_OPTION, false,
		                 "qretention-options(7) lists all options",
		                 "there is no option \"%.64s\"", name);
	row = &rows[option];
	if (value == NULL) {
		number = default_number(row);
	} else {
		rc = parse(row, name, value, 1, ret_clamped, &number, error);
		if (rc != QRET_DONE)
			return rc;
		if (is_text(row)) {
			text = strdup(value);
			if (text == NULL)
				return error_set(error, QRET_ERR_NOMEM, true, NULL,
				                 "out of memory");
		}
	}
	free(options->text[option]);
	options->text[option] = text;
	options->number[option] = number;
	return QRET_DONE;
}

int64_t options_get(const struct options *options, const char *name, char *ret_value,
                    size_t capacity)
{
	enum option option = find(name);
	char number[64];
	const char *value = number;

	if (option == OPTION_COUNT)
		return -1;
	if (is_text(&rows[option]))
		value = option_text(options, option);
	else if (rows[option].kind == KIND_BOOL)
		value = options->number[option] ? "true" : "false";
	else if (rows[option].kind == KIND_CHOICE)
		choice_copy(rows[option].range, options->number[option], number, sizeof(number));
	else
		snprintf(number, sizeof(number), "%" PRId64, options->number[option]);
	if (capacity > 0)
		snprintf(ret_value, capacity, "%s", value);
	return (int64_t)strlen(value);
}

int options_load_env(struct options *options, bool ret_clamped[OPTION_COUNT], struct error *error)
{
	int64_t number[OPTION_COUNT];

	memcpy(number, options->number, sizeof(number));
	for (enum option option = 0; option < OPTION_COUNT; option++) {
		const struct row *row = &rows[option];
		const char *value = row->env[0] == '\0' ? NULL : getenv(row->env);
		int rc;

		ret_clamped[option] = false;
		if (value == NULL || value[0] == '\0')
			continue;
		rc = parse(row, row->env, value, row->scale, &ret_clamped[option], &number[option],
		           error);
		if (rc != QRET_DONE)
			return rc;
	}
	memcpy(options->number, number, sizeof(number));
	return QRET_DONE;
}

int qret_option_get_info(uint32_t index, struct qret_option_info *ret_info)
{
	struct qret_option_info info = { 0 };

	if (index >= OPTION_COUNT)
		return QRET_ERR_ARGUMENT;
	info.name = rows[index].name;
	info.env = rows[index].env;
	info.type = type_name(&rows[index]);
	info.default_value = rows[index].fallback_text;
	info.range = rows[index].range;
	info.help = rows[index].help;
	return struct_write(ret_info, &info, sizeof(info), sizeof(info));
}
