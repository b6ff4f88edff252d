/* SPDX-License-Identifier: MIT */
/* CLOCK_MONOTONIC in microseconds. The wall clock of the host decides nothing in this library. */
#include "clock.h"

#include <time.h>

#include "qretention.h"

int64_t qret_now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * US_PER_SECOND + now.tv_nsec / 1000;
}

int64_t clock_after_ms(int64_t start_us, int64_t ms)
{
	if (ms <= 0)
		return start_us;
	if (ms > (NO_DEADLINE - start_us) / US_PER_MS)
		return NO_DEADLINE;
	return start_us + ms * US_PER_MS;
}
