/* SPDX-License-Identifier: MIT */
/*
 * Partitions whose steps keep failing, and until when each is left alone. Bounded; forgets the
 * least troubled.
 */
#ifndef QRET_LIB_BACKOFF_H
#define QRET_LIB_BACKOFF_H

#include <stdbool.h>
#include <stdint.h>

#define BACKOFF_ENTRIES 256

struct backoff {
	struct {
		uint8_t id[16];
		int32_t phase; /* where it failed last: success elsewhere forgives nothing */
		uint32_t strikes;
		int64_t until_us;
	} entries[BACKOFF_ENTRIES];
	uint32_t count;
};

/* Whether the item is to be left alone now. */
bool backoff_active(const struct backoff *backoff, const uint8_t *id, int64_t now_us);

/* A failure: the second in a row and later ones cost 1, 2, 4, ... intervals. */
void backoff_strike(struct backoff *backoff, const uint8_t *id, int32_t phase, int64_t now_us,
                    int64_t interval_ms);

/* Forgets items that nobody has tried for long: their partition, or their rule, is gone. */
void backoff_forget(struct backoff *backoff, int64_t now_us);

/* A success in a phase forgives the failures there. */
void backoff_clear(struct backoff *backoff, const uint8_t *id, int32_t phase);

#endif
