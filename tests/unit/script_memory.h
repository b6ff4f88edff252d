/* SPDX-License-Identifier: MIT */
/* Allocations of the library, which the linker leads here: counted, and the n-th fails on demand. */
#ifndef QRET_TESTS_SCRIPT_MEMORY_H
#define QRET_TESTS_SCRIPT_MEMORY_H

#include <stdbool.h>

/* From here on allocations are tracked; the n-th fails (0: none), or with `onwards` that and all after it. */
void memory_begin(long fail_at, bool onwards);

/* Ends tracking; returns how many blocks are still held. */
long memory_end(void);

/* Between the two nothing is tracked and nothing fails: for what the script itself keeps. */
void memory_pause(void);
void memory_resume(void);

/* Whether a failure was due since memory_begin. */
bool memory_failed(void);

#endif
