/* SPDX-License-Identifier: MIT */
/*
 * Preloaded into a host: its first qret_cycle_begin does not look whether somebody asked for a stop
 * before somebody has. The library asks for its process at every entry: the first time after the
 * connection string was read is that of the first cycle, the second, from another thread, is the stop.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PATIENCE 2000 /* hundredths of a second */

static atomic_int state; /* 1: connected, 2: in the first cycle, 3: stopped */

void *PQconninfoParse(const char *conninfo, char **error)
{
	void *(*real)(const char *, char **) =
		(void *(*)(const char *, char **))dlsym(RTLD_NEXT, "PQconninfoParse");

	if (real == NULL) /* libpq came with the library, by dlopen */
		real = (void *(*)(const char *, char **))dlsym(dlopen("libpq.so.5", RTLD_LAZY),
		                                               "PQconninfoParse");
	state = 1;
	return real(conninfo, error);
}

pid_t getpid(void)
{
	Dl_info caller;

	if (state > 0 && dladdr(__builtin_return_address(0), &caller) != 0 &&
	    strstr(caller.dli_fname, "libqretention") != NULL) {
		if (++state == 2) {
			for (int i = 0; i < PATIENCE && state == 2; i++)
				usleep(10000);
			usleep(100000); /* until the stop has gone on from here */
		}
	}
	return (pid_t)syscall(SYS_getpid);
}
