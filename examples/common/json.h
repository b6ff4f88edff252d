/* SPDX-License-Identifier: MIT */
/*
 * Writes one JSON object a line, always valid: every text is escaped, and bytes that are no UTF-8
 * become U+FFFD. It writes as it is called, and keeps no tree.
 */
#ifndef EXAMPLES_JSON_H
#define EXAMPLES_JSON_H

#include <stdint.h>
#include <stdio.h>

struct json {
	FILE *stream;
	int depth;
	int has_member; /* something stands before: a comma is due */
};

/* Begins the line's object. */
void json_begin(struct json *json, FILE *stream);

/* Ends it, and the line. */
void json_end(struct json *json);

/* A member that is an object or an array; the key is NULL inside an array. */
void json_open_object(struct json *json, const char *key);
void json_close_object(struct json *json);
void json_open_array(struct json *json, const char *key);
void json_close_array(struct json *json);

/* Members. A NULL text is written as null. */
void json_text(struct json *json, const char *key, const char *value);
void json_integer(struct json *json, const char *key, int64_t value);
void json_real(struct json *json, const char *key, double value);
void json_bool(struct json *json, const char *key, int value);
void json_null(struct json *json, const char *key);

/* Text that is JSON already, as a jsonb column gives it. */
void json_raw(struct json *json, const char *key, const char *value);

#endif
