/* SPDX-License-Identifier: MIT */
/*
 * The internal work item, and what one step of it came to. The public structs are views of
 * these.
 */
#ifndef QRET_LIB_WORK_H
#define QRET_LIB_WORK_H

#include <stdbool.h>
#include <stdint.h>

#include "qretention.h"

/*
 * One thing to step until it is done: a partition, or one of a phase's own units (a table, an
 * arm, the clean-up).
 */
struct work {
	struct qret_work_item item;
	uint32_t unit;   /* for phases with units of their own */
	int32_t rows;    /* size of its next batch; 0: as the lane has it */
	uint8_t retries; /* retryable failures in a row */
	uint8_t losses;  /* late locks lost in a row */
	uint32_t barren; /* event prune: steps in a row that were refused everything */
	bool lock_first; /* after too many losses: the step that locks first, once */
	bool stepped;    /* has had a step in this phase */
	bool settled;    /* nothing more to do for it in this phase */
	bool deleted;    /* some step of it deleted something, in whatever phase */
	bool misfiled;   /* due by floors: listed under another queue than its own */
	bool failed;     /* given up, or backed off, in whatever phase */
};

#define CURSOR_BYTES  128
#define FAILURE_BYTES 256

/* What the answer to one step says. */
struct outcome {
	int64_t deleted, messages;
	int64_t watermark; /* -1: none */
	int64_t elapsed_us;
	bool done;
	bool refused;            /* a cutoff lay in the server's future; nothing was tried */
	int64_t orphans;         /* clean-up: partitions that are gone and left rows behind */
	uint8_t orphan_uuid[16]; /* the first of them */
	int64_t deliveries, oversize, poison; /* event prune */
	int64_t waits;                        /* event prune: for locks, in vain */
	int64_t skipped, failed;              /* event prune and clean-up */
	char failure[FAILURE_BYTES];          /* SQLSTATE and message of the first that failed */
	char cursor[CURSOR_BYTES]; /* where the next step of this unit goes on; "" from the start */
	uint8_t cursor_uuid[16];
	bool has_cursor;
};

#endif
