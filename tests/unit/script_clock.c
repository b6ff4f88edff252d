/* SPDX-License-Identifier: MIT */
/* Time that passes only while somebody sleeps in poll(2), which the linker replaces, as it does qret_now_us. */
#include "script_pq.h"
#include "unit.h"

#include <poll.h>

#define CALLS_MOST 400000

int __real_poll(struct pollfd *fds, nfds_t count, int timeout_ms);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms);
int64_t __wrap_qret_now_us(void);

static int64_t now_us = 1000000000;
static long ticks;

int64_t script_now_us(void)
{
	return now_us;
}

void script_pass_ms(int64_t ms)
{
	now_us += ms * 1000;
}

void script_clock_reset(void)
{
	ticks = 0;
}

void script_tick(void)
{
	if (++ticks > CALLS_MOST)
		ck_abort_msg("the library spins");
}

int64_t __wrap_qret_now_us(void)
{
	return now_us;
}

static int ready(struct pollfd *fds, nfds_t count)
{
	int total = 0;

	for (nfds_t i = 0; i < count; i++) {
		fds[i].revents = 0;
		if (fds[i].fd >= SCRIPT_FD_BASE) {
			if (fds[i].events & POLLIN && script_fd_ready(fds[i].fd, false))
				fds[i].revents |= POLLIN;
			if (fds[i].events & POLLOUT && script_fd_ready(fds[i].fd, true))
				fds[i].revents |= POLLOUT;
		} else {
			__real_poll(&fds[i], 1, 0);
		}
		total += fds[i].revents != 0;
	}
	return total;
}

static int64_t next_change_us(const struct pollfd *fds, nfds_t count)
{
	int64_t next_us = INT64_MAX;

	for (nfds_t i = 0; i < count; i++) {
		int64_t own_us = fds[i].fd >= SCRIPT_FD_BASE ? script_fd_next_us(fds[i].fd)
		                                             : INT64_MAX;

		next_us = own_us < next_us ? own_us : next_us;
	}
	return next_us;
}

int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	int64_t deadline_us = timeout_ms < 0 ? INT64_MAX : now_us + (int64_t)timeout_ms * 1000;
	int total;

	script_tick();
	if (timeout_ms != 0 && script_knobs.stop_at > 0 && --script_knobs.stop_at == 0)
		script_knobs.stop();
	while ((total = ready(fds, count)) == 0 && now_us < deadline_us) {
		int64_t next_us = next_change_us(fds, count);

		if (script_knobs.on_sleep != NULL) {
			void (*hook)(void) = script_knobs.on_sleep;

			script_knobs.on_sleep = NULL;
			hook();
			continue;
		}
		if (next_us == INT64_MAX && deadline_us == INT64_MAX)
			ck_abort_msg("a sleep that nothing would end");
		next_us = next_us < deadline_us ? next_us : deadline_us;
		now_us = next_us > now_us ? next_us : now_us;
	}
	return total;
}
