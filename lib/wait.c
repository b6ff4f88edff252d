/* SPDX-License-Identifier: MIT */
/* What the context waits for, told to the host's loop or slept on here. */
#include "wait.h"

#include <limits.h>
#include <poll.h>

#include "clock.h"
#include "context.h"

#define FDS_MOST (LANES_MAX + 1)

/* Fills in the wake descriptor, then those of the lanes; returns how many. */
static uint32_t descriptors(const struct qret_ctx *ctx, struct qret_poll_fd *fds)
{
	uint32_t count = 0;

	fds[count].fd = ctx->wake.fds[0];
	fds[count++].events = QRET_POLL_READ;
	for (int i = 0; i < LANES_MAX && cycle_in_progress(ctx); i++) {
		const struct session *session = &ctx->lanes[i].session;

		if (session_fd(session) < 0)
			continue;
		fds[count].fd = session_fd(session);
		fds[count++].events = session_events(session);
	}
	return count;
}

int64_t wait_deadline_us(const struct qret_ctx *ctx)
{
	int64_t deadline_us = ctx->cycle.state == STATE_RUN ? runner_deadline_us(ctx) : NO_DEADLINE;

	if (ctx->cycle.eager)
		return ctx->cycle.started_us;
	for (int i = 0; i < LANES_MAX; i++) {
		int64_t own_us = session_deadline_us(&ctx->lanes[i].session);

		deadline_us = own_us < deadline_us ? own_us : deadline_us;
	}
	return deadline_us;
}

/* Milliseconds for poll(2), rounded up so that a deadline has passed when poll says so. */
static int poll_timeout_ms(int64_t deadline_us)
{
	int64_t left_us = deadline_us == NO_DEADLINE ? -1 : deadline_us - qret_now_us();

	if (deadline_us == NO_DEADLINE)
		return -1;
	if (left_us <= 0)
		return 0;
	return left_us / US_PER_MS >= INT_MAX ? INT_MAX
	                                      : (int)((left_us + US_PER_MS - 1) / US_PER_MS);
}

void wait_once(struct qret_ctx *ctx, int64_t deadline_us)
{
	struct qret_poll_fd ours[FDS_MOST];
	struct pollfd fds[FDS_MOST];
	uint32_t count = descriptors(ctx, ours);

	for (uint32_t i = 0; i < count; i++) {
		fds[i].fd = ours[i].fd;
		fds[i].events = (short)((ours[i].events & QRET_POLL_READ ? POLLIN : 0) |
		                        (ours[i].events & QRET_POLL_WRITE ? POLLOUT : 0));
		fds[i].revents = 0;
	}
	/*
	 * A signal is as good a reason to look around as any: whoever called decides what it
	 * meant.
	 */
	poll(fds, count, poll_timeout_ms(deadline_us));
}

void wait_session(struct qret_ctx *ctx, const struct session *session)
{
	struct pollfd fd = {
		session_fd(session),
		(short)(POLLIN | (session_events(session) & QRET_POLL_WRITE ? POLLOUT : 0)), 0
	};

	(void)ctx;
	poll(&fd, 1, poll_timeout_ms(session_deadline_us(session)));
}

int qret_poll_fds(struct qret_ctx *ctx, struct qret_poll_fd *ret_fds, uint32_t capacity,
                  uint32_t *ret_count)
{
	struct qret_poll_fd fds[FDS_MOST];
	int rc = context_enter(ctx);

	if (rc != QRET_DONE)
		return rc;
	if (ret_count == NULL || (ret_fds == NULL && capacity > 0))
		return context_fail(ctx, QRET_ERR_ARGUMENT, NULL,
		                    "ret_count is NULL, or ret_fds is NULL with a capacity");
	*ret_count = descriptors(ctx, fds);
	for (uint32_t i = 0; i < *ret_count && i < capacity; i++)
		ret_fds[i] = fds[i];
	return QRET_DONE;
}

int64_t qret_deadline_us(struct qret_ctx *ctx)
{
	return ctx == NULL || !cycle_in_progress(ctx) ? NO_DEADLINE : wait_deadline_us(ctx);
}

int qret_wait(struct qret_ctx *ctx)
{
	int rc = context_enter(ctx);

	if (rc != QRET_DONE)
		return rc;
	if (cycle_in_progress(ctx))
		wait_once(ctx, wait_deadline_us(ctx));
	else if (!wake_stopped(&ctx->wake))
		wait_once(ctx, ctx->cadence.next_us);
	if (!cycle_in_progress(ctx))
		wake_drain(&ctx->wake);
	return QRET_DONE;
}
