/* SPDX-License-Identifier: MIT */
/*
 * Interval from start to start; after an overrun a pause, so that a slow cycle neither spins nor
 * bursts to catch up; after a lost connection a growing, jittered back-off, so that a fleet does
 * not return at one instant.
 */
#include "cadence.h"

#include "clock.h"
#include "qretention.h"

#define PAUSE_LEAST_US    (1 * US_PER_SECOND)
#define PAUSE_MOST_US     (60 * US_PER_SECOND)
#define BACKOFF_FIRST_US  (US_PER_SECOND / 2)
#define BACKOFF_DOUBLINGS 7
#define WAIT_SPREAD_US    (US_PER_SECOND / 50)

void cadence_init(struct cadence *cadence, uint32_t seed)
{
	cadence->start_us = cadence->next_us = qret_now_us();
	cadence->failures = 0;
	cadence->random = seed | 1;
}

void cadence_started(struct cadence *cadence, int64_t now_us)
{
	cadence->start_us = now_us;
}

static int64_t overrun_pause_us(int64_t interval_ms)
{
	int64_t pause_us = interval_ms > PAUSE_MOST_US / 100 ? PAUSE_MOST_US
	                                                     : interval_ms * US_PER_MS / 10;

	return pause_us < PAUSE_LEAST_US ? PAUSE_LEAST_US : pause_us;
}

/* Between half of it and all of it. */
static int64_t jittered(struct cadence *cadence, int64_t us)
{
	uint32_t x = cadence->random;

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	cadence->random = x;
	return us / 2 + (int64_t)(x % 1024) * (us / 2) / 1024;
}

static int64_t backoff_us(struct cadence *cadence)
{
	uint32_t doublings = cadence->failures < BACKOFF_DOUBLINGS ? cadence->failures
	                                                           : BACKOFF_DOUBLINGS;

	cadence->failures++;
	return jittered(cadence, BACKOFF_FIRST_US << doublings);
}

void cadence_ended(struct cadence *cadence, int64_t now_us, int64_t interval_ms, int unreachable)
{
	int64_t next_us = clock_after_ms(cadence->start_us, interval_ms);

	if (next_us <= now_us)
		next_us = now_us + overrun_pause_us(interval_ms);
	if (unreachable) {
		int64_t later_us = now_us + backoff_us(cadence);

		next_us = later_us > next_us ? later_us : next_us;
	} else {
		cadence->failures = 0;
	}
	cadence->next_us = next_us;
}

void cadence_wait(struct cadence *cadence, int64_t now_us, int64_t wait_ms)
{
	/* A moment later than told, and not at the same moment as everybody else who was. */
	int64_t next_us = clock_after_ms(now_us, wait_ms) + jittered(cadence, WAIT_SPREAD_US);

	if (next_us < cadence->next_us)
		cadence->next_us = next_us;
}
