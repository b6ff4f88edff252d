/* SPDX-License-Identifier: MIT */
/* A pipe: the one thing that a signal handler, another thread and poll(2) have in common. */
#include "wake.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int wake_open(struct wake *wake)
{
	atomic_init(&wake->stopped, 0);
	wake->fds[0] = wake->fds[1] = -1;
	return pipe2(wake->fds, O_NONBLOCK | O_CLOEXEC);
}

void wake_close(struct wake *wake)
{
	for (int i = 0; i < 2; i++) {
		if (wake->fds[i] >= 0)
			close(wake->fds[i]);
		wake->fds[i] = -1;
	}
}

void wake_stop(struct wake *wake)
{
	int saved = errno;
	ssize_t written;

	atomic_store(&wake->stopped, 1);
	/* A full pipe is as awake as can be. */
	written = write(wake->fds[1], "", 1);
	(void)written;
	errno = saved;
}

void wake_drain(struct wake *wake)
{
	char bytes[64];

	while (read(wake->fds[0], bytes, sizeof(bytes)) > 0)
		;
}

void wake_resume(struct wake *wake)
{
	/*
	 * In this order a stop that comes between the two leaves a spurious wake-up, never a
	 * missed one.
	 */
	wake_drain(wake);
	atomic_store(&wake->stopped, 0);
}

bool wake_stopped(const struct wake *wake)
{
	return atomic_load(&wake->stopped) != 0;
}
