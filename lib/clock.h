/* SPDX-License-Identifier: MIT */
/* The one clock of every deadline, and arithmetic on it that cannot overflow. */
#ifndef QRET_LIB_CLOCK_H
#define QRET_LIB_CLOCK_H

#include <stdint.h>

#define US_PER_MS     1000LL
#define US_PER_SECOND 1000000LL
#define NO_DEADLINE   INT64_MAX

/* start + ms, saturating; ms below 0 counts as 0. */
int64_t clock_after_ms(int64_t start_us, int64_t ms);

#endif
