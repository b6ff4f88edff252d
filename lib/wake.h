/* SPDX-License-Identifier: MIT */
/* Stop requests: a sticky flag and a descriptor that wakes a sleeping poll(2). */
#ifndef QRET_LIB_WAKE_H
#define QRET_LIB_WAKE_H

#include <stdatomic.h>
#include <stdbool.h>

struct wake {
	atomic_int stopped;
	int fds[2]; /* read end, write end; both non-blocking and closed on exec */
};

int wake_open(struct wake *wake); /* 0, or -1 */
void wake_close(struct wake *wake);

/* Async-signal-safe; keeps errno. */
void wake_stop(struct wake *wake);
void wake_resume(struct wake *wake);
bool wake_stopped(const struct wake *wake);

/* Makes the descriptor unreadable again; the flag stays. */
void wake_drain(struct wake *wake);

#endif
