/* SPDX-License-Identifier: MIT */
/* When the next cycle is due. The host keeps the cadence; this only says what it is. */
#ifndef QRET_LIB_CADENCE_H
#define QRET_LIB_CADENCE_H

#include <stdint.h>

struct cadence {
	int64_t start_us;  /* of the running or last cycle */
	int64_t next_us;   /* when the next one is due */
	uint32_t failures; /* connections lost or refused in a row */
	uint32_t random;   /* state of the jitter */
};

void cadence_init(struct cadence *cadence, uint32_t seed);
void cadence_started(struct cadence *cadence, int64_t now_us);

/* unreachable: the cycle ended because there is no connection, so back off. */
void cadence_ended(struct cadence *cadence, int64_t now_us, int64_t interval_ms, int unreachable);

/* Somebody else's cadence rules: look again in wait_ms, but no later than was planned. */
void cadence_wait(struct cadence *cadence, int64_t now_us, int64_t wait_ms);

#endif
