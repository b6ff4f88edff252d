/* SPDX-License-Identifier: MIT */
/* SIGINT and SIGTERM end the work between two batches; a second one ends the process as usual. */
#include "driver.h"

#include <signal.h>

static struct qret_ctx *volatile stopped_ctx;
static volatile sig_atomic_t stop_flag;

static void on_signal(int number)
{
	(void)number;
	stop_flag = 1;
	qret_stop(stopped_ctx);
}

void stop_on_signals(struct qret_ctx *ctx)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND };

	stopped_ctx = ctx;
	sigemptyset(&action.sa_mask);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

void stop_forget(void)
{
	stopped_ctx = NULL;
}

int stop_requested(void)
{
	return stop_flag;
}
