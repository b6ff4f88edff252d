/* SPDX-License-Identifier: MIT */
/*
 * Command lines from tables: the row that reads an argument is the row that its help is printed
 * from, so the two cannot differ. Values go into a struct of the caller's, by offset.
 */
#ifndef EXAMPLES_ARGUMENTS_H
#define EXAMPLES_ARGUMENTS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum argument_kind {
	ARGUMENT_FLAG,    /* int: 1 once given */
	ARGUMENT_COUNT,   /* int: how often it was given */
	ARGUMENT_TEXT,    /* const char * */
	ARGUMENT_INTEGER, /* struct argument_integer */
	ARGUMENT_LIST     /* struct argument_list: may be given again */
};

struct argument_integer {
	int64_t value;
	int given;
};

struct argument_list {
	const char **items;
	size_t count;
};

struct argument {
	const char *name;       /* long form without dashes; NULL ends a table */
	const char *value_name; /* of its value, in the help; NULL if it takes none */
	const char *help;
	size_t offset; /* where its value goes */
	int64_t minimum, maximum;
	enum argument_kind kind;
	char letter; /* short form, or 0 */
};

/* A table and the struct that its offsets are into. */
struct argument_group {
	const struct argument *table;
	void *values;
};

#define ARGUMENT_ERROR_SIZE 160

/*
 * Reads argv[1..], options and words in any order; "--" ends the options. Lists grow on the heap
 * and are freed with arguments_free. Returns 0, or -1 with a sentence in `ret_error`.
 */
int arguments_parse(int argc, char **argv, const struct argument_group *groups, size_t group_count,
                    struct argument_list *ret_words, char ret_error[ARGUMENT_ERROR_SIZE]);

/* Whether a word is an option of this table whose value is the word after it. */
int argument_takes_next(const struct argument *table, const char *word);

/* Frees what lists of these groups hold. */
void arguments_free(const struct argument_group *groups, size_t group_count,
                    struct argument_list *words);

/* Adds to a list. Returns 0, or -1 without memory. */
int argument_list_add(struct argument_list *list, const char *item);

/* Prints a table's rows. */
void arguments_help(FILE *stream, const struct argument *table);

#endif
