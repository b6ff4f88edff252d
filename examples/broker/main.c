/* SPDX-License-Identifier: MIT */
/* The example broker: reads its command line, serves until it is told to end, prints what it did. */
#include "broker.h"

#include <signal.h>
#include <stdio.h>

static void on_signal(int number)
{
	(void)number;
	host_stop();
}

static void stop_on_signals(void)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND };

	sigemptyset(&action.sa_mask);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
}

int main(int argc, char **argv)
{
	static struct host host; /* the histograms are too large for a modest stack */
	struct settings settings;
	int rc = settings_read(argc, argv, &settings);

	if (rc >= 0) {
		settings_free(&settings);
		return rc;
	}
	stop_on_signals();
	rc = host_begin(&host, &settings);
	if (rc == 0) {
		host_serve(&host);
		result_print(&host);
	}
	host_end(&host);
	settings_free(&settings);
	if (fflush(stdout) != 0)
		return 1;
	return rc == 0 ? 0 : 1;
}
