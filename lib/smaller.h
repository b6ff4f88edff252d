/* SPDX-License-Identifier: MIT */
/* Counts of rows are reckoned with in 64 bits, and bounded by one that has 32. */
#ifndef QRET_LIB_SMALLER_H
#define QRET_LIB_SMALLER_H

#include <stdint.h>

static inline int32_t smaller(int64_t a, int64_t b)
{
	return (int32_t)(a < b ? a : b);
}

#endif
