/* SPDX-License-Identifier: MIT */
/* A set of UUIDs that only grows: which queues a cycle deleted from. */
#ifndef QRET_LIB_IDSET_H
#define QRET_LIB_IDSET_H

#include <stdint.h>

struct idset {
	uint8_t (*ids)[16]; /* open addressing; the all-zero id marks a free place */
	uint32_t capacity;  /* a power of two, or 0 */
	uint32_t count;
};

void idset_free(struct idset *set);

/* Empties it and keeps its memory. */
void idset_clear(struct idset *set);

/* Adds; returns 1 if it was not there, 0 if it was. Out of memory it may count an id twice. */
int idset_add(struct idset *set, const uint8_t *id);

#endif
