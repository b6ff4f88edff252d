/* SPDX-License-Identifier: MIT */
/* Bounded text. No locale is consulted: what is a character is decided by UTF-8 alone. */
#include "text.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static bool continues(unsigned char byte)
{
	return (byte & 0xc0) == 0x80;
}

size_t text_character(const char *s)
{
	const unsigned char *u = (const unsigned char *)s;

	if (u[0] == 0)
		return 0;
	if (u[0] < 0x80)
		return 1;
	if (u[0] >= 0xc2 && u[0] <= 0xdf && continues(u[1]))
		return 2;
	if ((u[0] & 0xf0) == 0xe0 && continues(u[1]) && continues(u[2])) {
		bool overlong = u[0] == 0xe0 && u[1] < 0xa0;
		bool surrogate = u[0] == 0xed && u[1] >= 0xa0;

		return overlong || surrogate ? 0 : 3;
	}
	if (u[0] >= 0xf0 && u[0] <= 0xf4 && continues(u[1]) && continues(u[2]) && continues(u[3])) {
		bool overlong = u[0] == 0xf0 && u[1] < 0x90;
		bool too_large = u[0] == 0xf4 && u[1] >= 0x90;

		return overlong || too_large ? 0 : 4;
	}
	return 0;
}

void text_copy(char *target, size_t capacity, const char *source)
{
	size_t length = source == NULL ? 0 : strlen(source);

	if (length >= capacity) {
		length = capacity - 1;
		while (length > 0 && continues((unsigned char)source[length]))
			length--;
	}
	if (length > 0)
		memmove(target, source, length);
	while (length > 0 && target[length - 1] == '\n')
		length--;
	/* A formatter that cut the text in mid-character leaves a lead byte without its tail. */
	for (size_t back = 1; back <= 3 && back <= length; back++) {
		unsigned char byte = (unsigned char)target[length - back];

		if (continues(byte))
			continue;
		if (byte >= 0xc0 && back < (byte >= 0xf0 ? 4u : byte >= 0xe0 ? 3u : 2u))
			length -= back;
		break;
	}
	target[length] = '\0';
}

void text_make_valid(char *text)
{
	while (*text != '\0') {
		size_t length = text_character(text);

		if (length == 0)
			*text = '?';
		text += length == 0 ? 1 : length;
	}
}
