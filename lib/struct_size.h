/* SPDX-License-Identifier: MIT */
/* The size rules of transparent structs: the caller's first field says how much it knows. */
#ifndef QRET_LIB_STRUCT_SIZE_H
#define QRET_LIB_STRUCT_SIZE_H

#include <stddef.h>
#include <stdint.h>

#define STRUCT_SIZE_ABSURD 4096

/* QRET_ERR_ARGUMENT if target is NULL or its size is below `least` or absurd. */
int struct_check(const void *target, size_t least);

/*
 * Out: copies `size` bytes of source over a target of the caller's size, which is kept; an
 * unknown tail is zeroed.
 */
int struct_write(void *target, const void *source, size_t size, size_t least);

/*
 * In: copies the caller's struct into a zeroed `size` bytes; a tail that is not known and not
 * zero is refused.
 */
int struct_read(void *target, const void *source, size_t size, size_t least);

#endif
