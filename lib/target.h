/* SPDX-License-Identifier: MIT */
/* A checked conninfo, and what libpq is told for each try at one of its hosts. */
#ifndef QRET_LIB_TARGET_H
#define QRET_LIB_TARGET_H

#include <stdint.h>

#include "error.h"

#define KEYWORDS_MAX 80

struct target;

/* Checks and copies a conninfo (NULL: ""). QRET_ERR_OPTION never repeats it. */
int target_new(const char *conninfo, struct target **ret_target, struct error *error);
void target_free(struct target *target);

/* How many hosts it names; a lost primary of several is looked for again among them. */
uint32_t target_hosts(const struct target *target);

/* How many tries it takes to have asked all of them. */
uint32_t target_attempts(const struct target *target);

/*
 * libpq would complain on stderr about a password file that others may read, and go on without it:
 * refuse it first, each time, since the file may be another one by the time a lost connection is
 * reopened.
 */
int target_check_password_file(const struct target *target, struct error *error);

/* For PQconnectStartParams; what the values point to lives here or in the target. */
struct keywords {
	const char *names[KEYWORDS_MAX + 1];
	const char *values[KEYWORDS_MAX + 1];
	int count;
	char host[1024], address[1024], port[64], seconds[24], milliseconds[24];
};

void target_keywords(const struct target *target, uint32_t attempt, int64_t idle_limit_ms,
                     struct keywords *keywords);

#endif
