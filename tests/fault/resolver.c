/* SPDX-License-Identifier: MIT */
/*
 * Stands in front of the C library (LD_PRELOAD) as a resolver that nobody answers: looking a name
 * up takes seconds, and fails. Addresses are not looked up.
 */
#include <dlfcn.h>
#include <netdb.h>
#include <stddef.h>
#include <unistd.h>

#define HANGS_SECONDS 3

static int waiting;

int resolver_waiting(void)
{
	return __atomic_load_n(&waiting, __ATOMIC_SEQ_CST);
}

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                struct addrinfo **ret_found)
{
	int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **) =
		(int (*)(const char *, const char *, const struct addrinfo *,
	                 struct addrinfo **))dlsym(RTLD_NEXT, "getaddrinfo");

	if (node == NULL || (hints != NULL && (hints->ai_flags & AI_NUMERICHOST)))
		return real(node, service, hints, ret_found);
	__atomic_store_n(&waiting, 1, __ATOMIC_SEQ_CST);
	sleep(HANGS_SECONDS);
	__atomic_store_n(&waiting, 0, __ATOMIC_SEQ_CST);
	return EAI_AGAIN;
}
