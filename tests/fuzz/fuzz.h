/* SPDX-License-Identifier: MIT */
/* What the fuzz programs share. */
#ifndef QRET_TESTS_FUZZ_H
#define QRET_TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_REQUIRE(condition)   \
	do {                      \
		if (!(condition)) \
			abort();  \
	} while (0)

/* The input from `skip` on as a terminated text, up to the first zero byte; freed by the caller. */
static inline char *fuzz_text(const uint8_t *data, size_t size, size_t skip)
{
	size_t length = size > skip ? size - skip : 0;
	char *text = calloc(1, length + 1);

	if (length > 0)
		memcpy(text, data + skip, length);
	return text;
}

/* By a decoder that shares nothing with the library's. */
static inline bool fuzz_is_utf8(const char *text)
{
	static const uint32_t least[] = { 0, 0x80, 0x800, 0x10000 };

	while (*text != '\0') {
		unsigned char lead = (unsigned char)*text++;
		int tail = lead < 0x80       ? 0
		           : lead >> 5 == 6  ? 1
		           : lead >> 4 == 14 ? 2
		           : lead >> 3 == 30 ? 3
		                             : -1;
		uint32_t point = tail == 0 ? lead : lead & (0x3fu >> (tail & 7));

		if (tail < 0)
			return false;
		for (int i = 0; i < tail; i++) {
			if (((unsigned char)*text & 0xc0) != 0x80)
				return false;
			point = point << 6 | ((unsigned char)*text++ & 0x3fu);
		}
		if ((tail > 0 && point < least[tail]) || point > 0x10ffff ||
		    (point >= 0xd800 && point <= 0xdfff))
			return false;
	}
	return true;
}

#endif
