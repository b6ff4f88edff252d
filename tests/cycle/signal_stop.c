/*
 * Raises qret_stop from a signal handler of C, as a host does. Compiled by test_stop.py; it is no
 * part of the library.
 */
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>

static void (*stop)(void *);
static void *context;
static volatile sig_atomic_t errno_kept = -1;

static void on_signal(int number)
{
	int before = 4711;

	(void)number;
	errno = before;
	stop(context);
	errno_kept = errno == before;
}

/* Arms SIGUSR1 without SA_RESTART, so that a sleeping poll(2) is interrupted. */
int signal_stop_arm(void (*stop_fn)(void *), void *stop_context)
{
	struct sigaction action;

	stop = stop_fn;
	context = stop_context;
	errno_kept = -1;
	memset(&action, 0, sizeof(action));
	action.sa_handler = on_signal;
	return sigaction(SIGUSR1, &action, NULL);
}

void signal_stop_disarm(void)
{
	signal(SIGUSR1, SIG_DFL);
}

/* 1: the handler ran and errno was as before; 0: it was changed; -1: it did not run. */
int signal_stop_errno_kept(void)
{
	return errno_kept;
}
