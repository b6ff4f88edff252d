/* SPDX-License-Identifier: MIT */
/* Struct growth. No byte past the caller's size is read or written. */
#include "struct_size.h"

#include <string.h>

#include "qretention.h"

static uint32_t caller_size(const void *target)
{
	uint32_t size;

	memcpy(&size, target, sizeof(size));
	return size;
}

int struct_check(const void *target, size_t least)
{
	if (target == NULL || caller_size(target) < least ||
	    caller_size(target) > STRUCT_SIZE_ABSURD)
		return QRET_ERR_ARGUMENT;
	return QRET_DONE;
}

int struct_write(void *target, const void *source, size_t size, size_t least)
{
	uint32_t theirs;

	if (struct_check(target, least) != QRET_DONE)
		return QRET_ERR_ARGUMENT;
	theirs = caller_size(target);
	memcpy(target, source, theirs < size ? theirs : size);
	if (theirs > size)
		memset((char *)target + size, 0, theirs - size);
	memcpy(target, &theirs, sizeof(theirs));
	return QRET_DONE;
}

int struct_read(void *target, const void *source, size_t size, size_t least)
{
	uint32_t theirs;

	if (struct_check(source, least) != QRET_DONE)
		return QRET_ERR_ARGUMENT;
	theirs = caller_size(source);
	for (size_t i = size; i < theirs; i++) {
		if (((const char *)source)[i] != 0)
			return QRET_ERR_ARGUMENT;
	}
	memset(target, 0, size);
	memcpy(target, source, theirs < size ? theirs : size);
	return QRET_DONE;
}
