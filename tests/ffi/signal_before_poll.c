/* SPDX-License-Identifier: MIT */
/*
 * Preloaded into a host: a signal comes when nothing but the sleep of a long poll(2) is left to do,
 * the moment in which a language that only marks signals for later would sleep on.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#define LONG_MS 60000

int poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	static int sent;
	int (*real)(struct pollfd *, nfds_t,
	            int) = (int (*)(struct pollfd *, nfds_t, int))dlsym(RTLD_NEXT, "poll");

	if (timeout_ms > LONG_MS && !sent) {
		sent = 1;
		kill(getpid(), SIGTERM);
	}
	return real(fds, count, timeout_ms);
}
