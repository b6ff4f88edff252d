/* SPDX-License-Identifier: MIT */
/* Small helpers for bounded text: copies that always terminate and never cut a UTF-8 character. */
#ifndef QRET_LIB_TEXT_H
#define QRET_LIB_TEXT_H

#include <stddef.h>

/* Copies source (NULL: "") into target, cut at a character boundary; trailing newlines are dropped.
 * source may be target itself. */
void text_copy(char *target, size_t capacity, const char *source);

/* Puts ? in place of every byte that belongs to no valid UTF-8 character. */
void text_make_valid(char *text);

/* Length in bytes of the valid UTF-8 character at s, or 0 if there is none. */
size_t text_character(const char *s);

#endif
