/* SPDX-License-Identifier: MIT */
/*
 * The two rounds that keep floors true: over the pinned partitions, whose group may have moved on,
 * and over all, slowly.
 */
#include <sys/random.h>

#include "clock.h"
#include "context.h"
#include "floors.h"
#include "smaller.h"
#include "uuid.h"

#define PINNED_ROUND_US    (45 * US_PER_SECOND) /* each pinned partition is looked at within 60 s */
#define PINNED_SHARE_LEAST 500
#define WALK_ROUND_US      (20LL * 3600 * US_PER_SECOND) /* each partition within a day */
#define WALK_SHARE_LEAST   8
#define WALK_WHOLE_MOST    32 /* a log so small is looked at whole in every cycle */

/*
 * A process that lives for one cycle would walk the same few partitions each time: begin anywhere.
 * Out of randomness it begins at the start.
 */
static void random_start(struct round *round)
{
	round->has_after = getrandom(round->after, sizeof(round->after), GRND_NONBLOCK) ==
	                   (ssize_t)sizeof(round->after);
	round->midway = round->has_after;
}

void floors_rounds_forget(struct floors *floors)
{
	floors->pinned.has_after = floors->walk.has_after = false;
	floors->pinned.looked = floors->walk.looked = 0;
	floors->pinned.counted = false;
	random_start(&floors->walk);
}

void floors_round_failed(struct round *round)
{
	random_start(round);
	round->looked = 0;
}

/* This cycle's share: what the time since the last share is of a whole round. */
static void share(struct round *round, int64_t round_us, int64_t least)
{
	int64_t now_us = qret_now_us();
	int64_t gap_us = now_us - round->last_us;
	int64_t part =
		gap_us >= round_us || round->last_us == 0
			? round->total
			: (int64_t)((double)round->total * (double)gap_us / (double)round_us);

	/* How much there is shows only at the end of a round: until then, all of it. */
	if (!round->counted)
		part = INT64_MAX;
	round->quota = part < least ? least : part;
	round->last_us = now_us;
}

void floors_share_begin(struct floors *floors)
{
	/* More than the last round had: thousands can come to be pinned between two cycles. */
	floors->pinned.counted &= floors->pinned.looked < floors->pinned.total;
	share(&floors->pinned, PINNED_ROUND_US, PINNED_SHARE_LEAST);
	/* The walk is slow by intent; the server estimates how much there is. */
	floors->walk.counted = true;
	/* A share that begins midway goes on at the start, so a small log is walked whole each time. */
	floors->walk.midway = floors->walk.has_after;
	share(&floors->walk, WALK_ROUND_US,
	      floors->walk.total > WALK_WHOLE_MOST ? WALK_SHARE_LEAST : WALK_WHOLE_MOST);
}

static void bind_round(struct floors *floors, enum floors_kind kind, const struct round *round,
                       struct parameters *parameters)
{
	floors->asked = smaller(round->quota, floors->sizes[kind]);
	parameter_uuid(parameters, round->has_after ? round->after : NULL);
	parameter_int4(parameters, floors->asked);
}

/*
 * The last row of a page says how many were looked at and where to go on. True when the share,
 * or the round, is done.
 */
static bool read_round(struct round *round, const struct pg_result *result, int looked_column,
                       int last_column)
{
	int row = result_rows(result) - 1;
	int64_t looked = row < 0 ? 0 : result_integer(result, row, looked_column, 0);

	round->looked += looked;
	round->quota -= looked;
	round->has_after = row >= 0 && result_uuid(result, row, last_column, round->after);
	if (!round->has_after && round->midway) {
		round->midway = false;
		round->looked = 0;
		return round->quota <= 0;
	}
	if (!round->has_after) {
		round->total = round->looked;
		round->looked = 0;
		round->counted = true;
	}
	return !round->has_after || round->quota <= 0;
}

const char *floors_pinned_bind(struct qret_ctx *ctx, struct parameters *parameters)
{
	parameter_timestamp(parameters, ctx->cycle.clock_us);
	bind_round(&ctx->floors, FLOORS_PINNED, &ctx->floors.pinned, parameters);
	return context_statement(ctx, STATEMENT_FLOORS_PINNED);
}

bool floors_pinned_read(struct qret_ctx *ctx, const struct pg_result *result)
{
	struct floors *floors = &ctx->floors;
	bool over = read_round(&floors->pinned, result, 1, 2);

	for (int row = 0; row < result_rows(result); row++) {
		uint8_t id[UUID_BYTES];

		if (result_uuid(result, row, 0, id))
			floors_unsettle(floors, id);
	}
	if (!floors->pinned.has_after && floors->pinned.counted)
		floors->pinned_count = floors->pinned.total;
	return over;
}

const char *floors_walk_bind(struct qret_ctx *ctx, struct parameters *parameters)
{
	parameter_timestamp(parameters, ctx->cycle.clock_us);
	bind_round(&ctx->floors, FLOORS_WALK, &ctx->floors.walk, parameters);
	return context_statement(ctx, STATEMENT_FLOORS_WALK);
}

bool floors_walk_read(struct qret_ctx *ctx, const struct pg_result *result)
{
	bool over = read_round(&ctx->floors.walk, result, 6, 7);
	int last = result_rows(result) - 1;

	for (int row = 0; row < last; row++)
		floors_refreshed_read(ctx, result, row);
	/* The server's estimate serves until a round has counted. */
	if (last >= 0 && ctx->floors.walk.total < result_integer(result, last, 8, 0))
		ctx->floors.walk.total = result_integer(result, last, 8, 0);
	return over;
}
