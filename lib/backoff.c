/* SPDX-License-Identifier: MIT */
/* A small table, searched in order: it is empty nearly always. */
#include "backoff.h"

#include <string.h>

#include "clock.h"
#include "uuid.h"

#define MOST_MS        300000
#define FORGET_MS      (2 * MOST_MS)
#define DOUBLINGS_MOST 16

static int find(const struct backoff *backoff, const uint8_t *id)
{
	for (uint32_t i = 0; i < backoff->count; i++) {
		if (memcmp(backoff->entries[i].id, id, UUID_BYTES) == 0)
			return (int)i;
	}
	return -1;
}

bool backoff_active(const struct backoff *backoff, const uint8_t *id, int64_t now_us)
{
	int at = backoff->count == 0 ? -1 : find(backoff, id);

	return at >= 0 && now_us < backoff->entries[at].until_us;
}

static int make_room(struct backoff *backoff, const uint8_t *id)
{
	uint32_t at = backoff->count;

	if (at < BACKOFF_ENTRIES) {
		backoff->count++;
	} else {
		at = 0;
		for (uint32_t i = 1; i < BACKOFF_ENTRIES; i++) {
			if (backoff->entries[i].until_us < backoff->entries[at].until_us)
				at = i;
		}
	}
	memcpy(backoff->entries[at].id, id, UUID_BYTES);
	backoff->entries[at].strikes = 0;
	return (int)at;
}

void backoff_strike(struct backoff *backoff, const uint8_t *id, int32_t phase, int64_t now_us,
                    int64_t interval_ms)
{
	int at = find(backoff, id);
	uint32_t doublings;
	int64_t pause_ms = 0;

	if (at < 0)
		at = make_room(backoff, id);
	backoff->entries[at].phase = phase;
	if (++backoff->entries[at].strikes >= 2) {
		doublings = backoff->entries[at].strikes - 2;
		doublings = doublings > DOUBLINGS_MOST ? DOUBLINGS_MOST : doublings;
		pause_ms = interval_ms > MOST_MS ? MOST_MS : interval_ms << doublings;
		pause_ms = pause_ms > MOST_MS ? MOST_MS : pause_ms;
	}
	backoff->entries[at].until_us = clock_after_ms(now_us, pause_ms);
}

void backoff_clear(struct backoff *backoff, const uint8_t *id, int32_t phase)
{
	int at = backoff->count == 0 ? -1 : find(backoff, id);

	if (at >= 0 && backoff->entries[at].phase == phase)
		backoff->entries[at] = backoff->entries[--backoff->count];
}

void backoff_forget(struct backoff *backoff, int64_t now_us)
{
	for (uint32_t i = backoff->count; i-- > 0;) {
		if (clock_after_ms(backoff->entries[i].until_us, FORGET_MS) < now_us)
			backoff->entries[i] = backoff->entries[--backoff->count];
	}
}
