/* SPDX-License-Identifier: MIT */
/* Option values: one table behind setters, getters and the environment. Knows no context. */
#ifndef QRET_LIB_OPTIONS_H
#define QRET_LIB_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "error.h"

enum option {
#define NUMBER(id, ...)   OPTION_##id,
#define FLOOR(id, ...)    OPTION_##id,
#define BOOL(id, ...)     OPTION_##id,
#define CHOICE(id, ...)   OPTION_##id,
#define NAME(id, ...)     OPTION_##id,
#define RELATION(id, ...) OPTION_##id,
#define ROLE(id, ...)     OPTION_##id,
#include "option_table.h"
#undef NUMBER
#undef FLOOR
#undef BOOL
#undef CHOICE
#undef NAME
#undef RELATION
#undef ROLE
	OPTION_COUNT
};

/* Values of the CHOICE options, in the order of their rows. */
enum { ENGINES_LOG, ENGINES_EVENT, ENGINES_BOTH };
enum { GATE_SESSION, GATE_LEASE, GATE_NONE };
enum { POOLER_NONE, POOLER_TRANSACTION };
enum { WORK_LIST_AUTO, WORK_LIST_SCAN, WORK_LIST_DUE };
enum { STEP_VERSION_AUTO, STEP_VERSION_1, STEP_VERSION_2 };

struct options {
	int64_t number[OPTION_COUNT]; /* numbers, booleans, index of a choice */
	char *text[OPTION_COUNT];     /* owned; NULL: the default */
};

int options_init(struct options *options);
void options_free(struct options *options);

int64_t option_number(const struct options *options, enum option option);
const char *option_text(const struct options *options, enum option option);

/*
 * Sets one option from text (NULL: default). *ret_clamped tells whether a floor raised the
 * value.
 */
int options_set(struct options *options, const char *name, const char *value, bool *ret_clamped,
                struct error *error);

/*
 * Writes the current value as text, truncated to capacity; returns its full length, or -1 for an
 * unknown name.
 */
int64_t options_get(const struct options *options, const char *name, char *ret_value,
                    size_t capacity);

/* All or nothing. ret_clamped[option]: whether a floor raised it. */
int options_load_env(struct options *options, bool ret_clamped[OPTION_COUNT], struct error *error);

/* Whether the statements name what this option says. */
bool option_changes_statements(const char *name);

const char *option_name(enum option option);

#endif
