/* SPDX-License-Identifier: MIT */
/* Prints UUIDs. */
#include "uuid.h"

void uuid_text(const uint8_t *uuid, char *ret_text)
{
	static const char digits[] = "0123456789abcdef";

	for (int i = 0; i < UUID_BYTES; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			*ret_text++ = '-';
		*ret_text++ = digits[uuid[i] >> 4];
		*ret_text++ = digits[uuid[i] & 15];
	}
	*ret_text = '\0';
}
