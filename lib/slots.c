/* SPDX-License-Identifier: MIT */
/* Which item a lane takes next: one in its hands, one that a lost lane left, or a new one. */
#include "slots.h"

#include "context.h"
#include "failure.h"

void slot_settle(struct slot *slot)
{
	slot->work->settled = true;
	slot->work = NULL;
}

static struct slot *free_slot(struct lane *lane)
{
	for (int i = 0; i < SESSION_REQUESTS_MAX; i++) {
		if (lane->slots[i].work == NULL)
			return &lane->slots[i];
	}
	return NULL;
}

struct slot *slot_waiting(struct lane *lane)
{
	for (int i = 0; i < SESSION_REQUESTS_MAX; i++) {
		if (lane->slots[i].work != NULL && !lane->slots[i].flying)
			return &lane->slots[i];
	}
	return NULL;
}

/* An item that a lost lane left behind. */
static struct work *take_orphan(struct qret_ctx *ctx)
{
	for (int i = 0; i < LANES_MAX && ctx->runner.orphans > 0; i++) {
		struct slot *slot = ctx->lanes[i].given_up ? slot_waiting(&ctx->lanes[i]) : NULL;
		struct work *work = slot == NULL ? NULL : slot->work;

		if (work == NULL)
			continue;
		slot->work = NULL;
		ctx->runner.orphans--;
		return work;
	}
	return NULL;
}

/* The next item that nobody has had and that has something to do in this phase. */
static struct work *take_next(struct qret_ctx *ctx)
{
	struct runner *runner = &ctx->runner;

	while (runner->next < runner->count) {
		struct work *work = &runner->works[runner->next++];

		if (runner->phase->units > 0 || runner->single)
			return work;
		if (work->settled || !runner->phase->applies(ctx, work))
			continue;
		if (!backoff_active(&runner->backoff, work->item.partition_id, qret_now_us()))
			return work;
		failure_of_backed_off(ctx, work);
	}
	return NULL;
}

/* The slot to send next on this lane: unfinished items first, then new ones. */
struct slot *slot_next(struct qret_ctx *ctx, struct lane *lane)
{
	struct slot *slot = slot_waiting(lane);

	if (slot != NULL)
		return slot;
	slot = free_slot(lane);
	if (slot == NULL)
		return NULL;
	slot->work = take_orphan(ctx);
	if (slot->work == NULL)
		slot->work = take_next(ctx);
	return slot->work == NULL ? NULL : slot;
}
