/* SPDX-License-Identifier: MIT */
/* Batch size from time, in both directions, and the bound on rows in flight. B04, B15, B17. */
#include "unit.h"

#include <stdlib.h>

#include "batch.h"
#include "context.h"

static struct qret_ctx *ctx;
static struct lane *lane;

static void begin(int32_t phase, const char *batch_size)
{
	ck_assert_int_eq(qret_ctx_new(&ctx), QRET_DONE);
	ck_assert_int_eq(qret_set_option(ctx, "batch_size", batch_size), QRET_DONE);
	ctx->runner.phase = phase_find(phase);
	lane = &ctx->lanes[0];
	lane->window = 1;
	lane->rows = batch_first(ctx);
}

static void end(void)
{
	qret_ctx_free(ctx);
}

/* A step of `rows` that deleted `deleted` in `elapsed_us`. */
static void learn(int32_t rows, int64_t deleted, int64_t elapsed_us, bool done)
{
	const struct outcome outcome = { .deleted = deleted,
		                         .elapsed_us = elapsed_us,
		                         .done = done };

	batch_learn(ctx, lane, rows, &outcome);
}

static int32_t next_rows(void)
{
	const struct work work = { .rows = 0 };

	return batch_rows(ctx, lane, &work);
}

START_TEST(batch_first_is_modest)
{
	begin(QRET_PHASE_RETENTION, "1000");
	ck_assert_int_le(next_rows(), 100);
	end();
	begin(QRET_PHASE_RETENTION, "7");
	ck_assert_int_eq(next_rows(), 7);
	end();
	begin(QRET_PHASE_RETENTION, "1");
	ck_assert_int_eq(next_rows(), 1);
	end();
}
END_TEST

/* Full and fast batches: it grows, gently, up to batch_size and not beyond. */
START_TEST(batch_grows_gently)
{
	int32_t before;

	begin(QRET_PHASE_RETENTION, "1000");
	for (int i = 0; i < 50; i++) {
		before = next_rows();
		learn(before, before, 100, false);
		ck_assert_int_ge(next_rows(), before);
		ck_assert_int_le(next_rows(), 2 * before);
	}
	ck_assert_int_eq(next_rows(), 1000);
	end();
}
END_TEST

/* The target is 5 ms: what took 50 ms is cut to a tenth at once. */
START_TEST(batch_shrinks_at_once)
{
	begin(QRET_PHASE_RETENTION, "1000");
	lane->rows = 1000;
	learn(1000, 1000, 50000, false);
	ck_assert_int_eq(next_rows(), 100);
	learn(100, 100, 100000000, false);
	ck_assert_int_eq(next_rows(), 1);
	/* and comes back */
	for (int i = 0; i < 40; i++)
		learn(next_rows(), next_rows(), 10, false);
	ck_assert_int_eq(next_rows(), 1000);
	end();
}
END_TEST

/* A slow step that deleted nothing says nothing about sizes. */
START_TEST(batch_ignores_empty_steps)
{
	begin(QRET_PHASE_RETENTION, "1000");
	lane->rows = 300;
	learn(300, 0, 90000000, true);
	ck_assert_int_eq(lane->rows, 300);
	learn(300, 0, 0, true);
	ck_assert_int_eq(lane->rows, 300);
	end();
}
END_TEST

/* A partition with little in it is no proof that more would be fast. */
START_TEST(batch_does_not_grow_on_partial)
{
	begin(QRET_PHASE_RETENTION, "1000");
	lane->rows = 300;
	learn(300, 10, 10, true);
	ck_assert_int_eq(lane->rows, 300);
	end();
}
END_TEST

/* The functions may be a host's, with any number in their answer. */
START_TEST(batch_survives_absurd_answers)
{
	static const int64_t absurd[] = { INT64_MAX, INT64_MIN, -1, 1LL << 62, 1000000000000 };

	begin(QRET_PHASE_RETENTION, "1000000");
	ck_assert_int_eq(qret_set_option(ctx, "step_target_ms", "600000"), QRET_DONE);
	for (size_t i = 0; i < COUNT_OF(absurd); i++) {
		for (size_t j = 0; j < COUNT_OF(absurd); j++) {
			learn(100, absurd[i], absurd[j], i % 2 == 0);
			ck_assert_int_ge(next_rows(), 1);
			ck_assert_int_le(next_rows(), 1000000);
			ck_assert_uint_ge(lane->window, 1);
		}
	}
	end();
}
END_TEST

START_TEST(batch_of_item_is_bounded)
{
	struct work work = { .rows = 5000 };

	begin(QRET_PHASE_RETENTION, "1000");
	ck_assert_int_eq(batch_rows(ctx, lane, &work), 1000);
	work.rows = 3;
	ck_assert_int_eq(batch_rows(ctx, lane, &work), 3);
	end();
}
END_TEST

/* A rate holds a step to one second's worth. */
START_TEST(batch_within_rate)
{
	begin(QRET_PHASE_RETENTION, "1000");
	lane->rows = 1000;
	ck_assert_int_eq(qret_set_option(ctx, "max_rows_per_second", "20"), QRET_DONE);
	ck_assert_int_eq(next_rows(), 20);
	end();
}
END_TEST

/* Phases that are not sized by time take what they may at once; those of the outbox have a size of their own. */
START_TEST(batch_of_other_phases)
{
	begin(QRET_PHASE_PARTITION_CLEANUP, "1000");
	ck_assert_int_eq(next_rows(), 1000);
	ck_assert(batch_fits(ctx, lane));
	lane->flying = 1;
	ck_assert(!batch_fits(ctx, lane));
	end();
	begin(QRET_PHASE_EVENT_PRUNE, "1000");
	ck_assert_int_eq(next_rows(), 5000);
	ck_assert_int_eq(qret_set_option(ctx, "event_prune_limit", "10"), QRET_DONE);
	/* It bounds events; a transaction is no smaller for it. */
	ck_assert_int_eq(next_rows(), 5000);
	ctx->report.events_deleted = 8;
	ck_assert_int_eq(next_rows(), 5000);
	end();
}
END_TEST

/*
 * Whatever steps answer, and in whatever order: rows in flight on a lane stay within batch_size,
 * since a stop waits for all of them.
 */
START_TEST(batch_rows_in_flight_bounded)
{
	static const char *const sizes[] = { "1", "2", "3", "10", "100", "1000", "1000000" };

	for (size_t size = 0; size < COUNT_OF(sizes); size++) {
		int32_t flying[64], most = atoi(sizes[size]);
		uint32_t widest = 0;

		begin(QRET_PHASE_RETENTION, sizes[size]);
		srand(7);
		for (int round = 0; round < 20000; round += (int)unit_stride(11)) {
			const struct work work = { .rows = rand() % 8 == 0 ? rand() % 2000 : 0 };
			int32_t rows, mood = round / 2000 % 4;

			while (batch_fits(ctx, lane)) {
				ck_assert_uint_lt(lane->flying, 64);
				rows = batch_rows(ctx, lane, &work);
				flying[lane->flying++] = rows;
				lane->rows_flying += rows;
			}
			if (lane->rows_flying > most)
				ck_abort_msg("%lld rows in flight of %d",
				             (long long)lane->rows_flying, most);
			widest = lane->flying > widest ? lane->flying : widest;
			/* The oldest answers. */
			rows = flying[0];
			lane->flying--;
			lane->rows_flying -= rows;
			memmove(flying, flying + 1, lane->flying * sizeof(*flying));
			if (mood == 0)
				learn(rows, rand() % 3, rand() % 1000, true);
			else if (mood == 1)
				learn(rows, rows, rand() % 100000, false);
			else
				learn(rows, rand() % (rows + 1), rand() % 20000, rand() % 2);
		}
		/* The test means something only where the window did open. */
		ck_assert(most < 10 || widest > 1);
		end();
	}
}
END_TEST

int main(void)
{
	const TTest *tests[] = { batch_first_is_modest,
		                 batch_grows_gently,
		                 batch_shrinks_at_once,
		                 batch_ignores_empty_steps,
		                 batch_does_not_grow_on_partial,
		                 batch_survives_absurd_answers,
		                 batch_of_item_is_bounded,
		                 batch_within_rate,
		                 batch_of_other_phases,
		                 batch_rows_in_flight_bounded,
		                 NULL };

	return unit_run("batch", tests);
}
