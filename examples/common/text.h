/* SPDX-License-Identifier: MIT */
/*
 * Numbers, durations and times as people read them, and text wrapped to a width.
 * It knows nothing of terminals, and allocates nothing.
 */
#ifndef EXAMPLES_TEXT_H
#define EXAMPLES_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define TEXT_SMALL 48 /* what one formatted number, duration or time needs at most */
#define TEXT_WIDTH 80 /* the width that everything printed fits */

/* 1204 as "1,204". Returns the buffer, as the other formatters do. */
const char *text_count(char buffer[TEXT_SMALL], int64_t count);

/* 412000 as "412 ms", 200000000 as "3 min 20 s". */
const char *text_duration(char buffer[TEXT_SMALL], int64_t microseconds);

/* Microseconds since 1970 as "2024-05-01 12:00:05Z". */
const char *text_time(char buffer[TEXT_SMALL], int64_t microseconds);

/* The time of day alone: "12:00:05Z". */
const char *text_time_of_day(char buffer[TEXT_SMALL], int64_t microseconds);

/* 16 bytes as a UUID's 36 characters. */
const char *text_uuid(char buffer[TEXT_SMALL], const uint8_t id[16]);

/* Reads a UUID in its usual form. Returns 0, or -1 if it is none. */
int text_parse_uuid(const char *text, uint8_t ret_id[16]);

/* Reads a whole decimal number within bounds. Returns 0, or -1 if it is none. */
int text_parse_integer(const char *text, int64_t minimum, int64_t maximum, int64_t *ret_value);

/*
 * Prints text in lines of at most TEXT_WIDTH columns, each after `indent` spaces. The first line's
 * indent is already there if `column` says that something stands on it.
 */
void text_wrap(FILE *stream, const char *text, int indent, int column);

#endif
