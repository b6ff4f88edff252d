/* SPDX-License-Identifier: MIT */
/*
 * Preloaded into a host: its first qret_cycle_begin takes a second, before it looks whether somebody
 * asked for a stop. The library asks for its process at every entry; the first time after the
 * connection string was read is that of the first cycle.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static volatile int connected;

void *PQconninfoParse(const char *conninfo, char **error)
{
	void *(*real)(const char *, char **) =
		(void *(*)(const char *, char **))dlsym(RTLD_NEXT, "PQconninfoParse");

	if (real == NULL) /* libpq came with the library, by dlopen */
		real = (void *(*)(const char *, char **))dlsym(dlopen("libpq.so.5", RTLD_LAZY),
		                                               "PQconninfoParse");
	connected = 1;
	return real(conninfo, error);
}

pid_t getpid(void)
{
	Dl_info caller;

	if (connected && dladdr(__builtin_return_address(0), &caller) != 0 &&
	    strstr(caller.dli_fname, "libqretention") != NULL) {
		connected = 0;
		sleep(1);
	}
	return (pid_t)syscall(SYS_getpid);
}
