/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "wake.h"

static struct wake wake;

static bool readable(void)
{
	struct pollfd fd = { wake.fds[0], POLLIN, 0 };

	return poll(&fd, 1, 0) == 1;
}

START_TEST(wake_stop_is_sticky)
{
	ck_assert_int_eq(wake_open(&wake), 0);
	ck_assert(!wake_stopped(&wake));
	ck_assert(!readable());
	wake_stop(&wake);
	ck_assert(wake_stopped(&wake));
	ck_assert(readable());
	wake_drain(&wake);
	ck_assert(!readable());
	ck_assert(wake_stopped(&wake));
	wake_resume(&wake);
	ck_assert(!wake_stopped(&wake));
	wake_close(&wake);
}
END_TEST

/* A pipe that is full must not block the signal handler, nor lose the stop. */
START_TEST(wake_stop_with_a_full_pipe)
{
	ck_assert_int_eq(wake_open(&wake), 0);
	for (int i = 0; i < 70000; i++)
		wake_stop(&wake);
	ck_assert(readable());
	wake_resume(&wake);
	ck_assert(!readable());
	ck_assert(!wake_stopped(&wake));
	wake_close(&wake);
}
END_TEST

START_TEST(wake_keeps_errno)
{
	ck_assert_int_eq(wake_open(&wake), 0);
	for (int i = 0; i < 70000; i++)
		wake_stop(&wake);
	errno = EXDEV;
	wake_stop(&wake);
	ck_assert_int_eq(errno, EXDEV);
	wake_close(&wake);
	errno = EXDEV;
	wake_stop(&wake);
	ck_assert_int_eq(errno, EXDEV);
}
END_TEST

START_TEST(wake_descriptors_do_not_leak)
{
	int before = unit_open_descriptors();

	ck_assert_int_eq(wake_open(&wake), 0);
	for (int i = 0; i < 2; i++) {
		ck_assert(fcntl(wake.fds[i], F_GETFD) & FD_CLOEXEC);
		ck_assert(fcntl(wake.fds[i], F_GETFL) & O_NONBLOCK);
	}
	wake_close(&wake);
	wake_close(&wake);
	ck_assert_int_eq(unit_open_descriptors(), before);
}
END_TEST

static void on_signal(int signal)
{
	(void)signal;
	wake_stop(&wake);
}

START_TEST(wake_from_signal_handler)
{
	struct sigaction action = { .sa_handler = on_signal }, before;
	struct pollfd fd;

	ck_assert_int_eq(wake_open(&wake), 0);
	sigaction(SIGUSR1, &action, &before);
	raise(SIGUSR1);
	fd = (struct pollfd){ wake.fds[0], POLLIN, 0 };
	ck_assert_int_eq(poll(&fd, 1, 1000), 1);
	ck_assert(wake_stopped(&wake));
	sigaction(SIGUSR1, &before, NULL);
	wake_close(&wake);
}
END_TEST

static void *stop_in_thread(void *data)
{
	(void)data;
	wake_stop(&wake);
	return NULL;
}

START_TEST(wake_from_another_thread)
{
	struct pollfd fd;
	pthread_t thread;

	ck_assert_int_eq(wake_open(&wake), 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, stop_in_thread, NULL), 0);
	fd = (struct pollfd){ wake.fds[0], POLLIN, 0 };
	ck_assert_int_eq(poll(&fd, 1, 10000), 1);
	pthread_join(thread, NULL);
	ck_assert(wake_stopped(&wake));
	wake_close(&wake);
}
END_TEST

int main(void)
{
	const TTest *tests[] = { wake_stop_is_sticky,
		                 wake_stop_with_a_full_pipe,
		                 wake_keeps_errno,
		                 wake_descriptors_do_not_leak,
		                 wake_from_signal_handler,
		                 wake_from_another_thread,
		                 NULL };

	return unit_run("wake", tests);
}
