/* SPDX-License-Identifier: MIT */
/* Hash set of UUIDs. They are random as they come, so a few of their bytes are the hash. */
#include "idset.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_CAPACITY 64

static const uint8_t zero[16];

void idset_free(struct idset *set)
{
	free(set->ids);
	set->ids = NULL;
	set->capacity = set->count = 0;
}

void idset_clear(struct idset *set)
{
	if (set->capacity > 0)
		memset(set->ids, 0, set->capacity * sizeof(*set->ids));
	set->count = 0;
}

/* Its place, or the free one where it would go. There is always a free one. */
static uint32_t place(uint8_t (*ids)[16], uint32_t capacity, const uint8_t *id)
{
	uint32_t at;

	memcpy(&at, id + 12, sizeof(at));
	for (at &= capacity - 1; memcmp(ids[at], zero, 16) != 0 && memcmp(ids[at], id, 16) != 0;)
		at = (at + 1) & (capacity - 1);
	return at;
}

static bool grow(struct idset *set)
{
	uint32_t capacity = set->capacity == 0 ? FIRST_CAPACITY : 2 * set->capacity;
	uint8_t(*ids)[16] = calloc(capacity, sizeof(*ids));

	if (ids == NULL)
		return false;
	for (uint32_t i = 0; i < set->capacity; i++) {
		if (memcmp(set->ids[i], zero, 16) != 0)
			memcpy(ids[place(ids, capacity, set->ids[i])], set->ids[i], 16);
	}
	free(set->ids);
	set->ids = ids;
	set->capacity = capacity;
	return true;
}

int idset_add(struct idset *set, const uint8_t *id)
{
	uint32_t at;

	if (set->count + 1 > set->capacity / 2 && !grow(set))
		return 1;
	at = place(set->ids, set->capacity, id);
	if (memcmp(set->ids[at], zero, 16) != 0)
		return 0;
	memcpy(set->ids[at], id, 16);
	set->count++;
	return 1;
}
