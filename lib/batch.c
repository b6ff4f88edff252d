/* SPDX-License-Identifier: MIT */
/*
 * Batch size from time: the next batch aims at step_target_ms, shrinking at once and growing
 * gently. The window grows while steps find little to do and shrinks when they find much, so that
 * the rows in flight on a lane stay within batch_size, and a stop never waits for more.
 */
#include "batch.h"

#include "clock.h"
#include "context.h"
#include "smaller.h"

#define FIRST_ROWS  100
#define WINDOW_MOST 32

/* Rows that may be in flight on one lane. A row rate bounds them to one second's worth. */
static int32_t capacity(const struct qret_ctx *ctx)
{
	int64_t rate = context_number(ctx, OPTION_MAX_ROWS_PER_SECOND);
	int64_t rows = phase_rows(ctx, ctx->runner.phase);

	if (rate > 0 && rate < rows)
		rows = rate;
	return rows < 1 ? 1 : (int32_t)rows;
}

int32_t batch_first(const struct qret_ctx *ctx)
{
	return smaller(FIRST_ROWS, context_number(ctx, OPTION_BATCH_SIZE));
}

/* Units that keep a cursor go in order; others are independent, and mostly have little to do. */
static uint32_t window(const struct qret_ctx *ctx, const struct lane *lane)
{
	const struct phase *phase = ctx->runner.phase;

	if (ctx->runner.single || phase->cursored)
		return 1;
	return phase->units > 0 ? phase->units : lane->window;
}

int32_t batch_rows(const struct qret_ctx *ctx, const struct lane *lane, const struct work *work)
{
	int32_t most = capacity(ctx) / (int32_t)window(ctx, lane);
	int32_t rows = most;

	if (work->rows > 0)
		rows = work->rows;
	else if (ctx->runner.phase->sized && !ctx->runner.single)
		rows = lane->rows;
	/* What is in flight may have been sent under a narrower window, with larger batches. */
	rows = smaller(smaller(rows, most), capacity(ctx) - lane->rows_flying);
	return rows < 1 ? 1 : rows;
}

bool batch_fits(const struct qret_ctx *ctx, const struct lane *lane)
{
	return lane->flying < window(ctx, lane) &&
	       (lane->flying == 0 || lane->rows_flying < capacity(ctx));
}

/* Steps that took little and found little leave room for one more beside them. */
static bool window_may_grow(const struct lane *lane, bool done, bool quick, int64_t found,
                            int64_t most)
{
	int64_t wanted = lane->window + 1;

	if (lane->window >= WINDOW_MOST)
		return false;
	return done ? quick && wanted * (found + 1) <= most : wanted * lane->rows <= most;
}

/*
 * Two in flight, so that the server has the next one while an answer travels. A last item has no
 * other beside it.
 */
static int32_t largest(const struct qret_ctx *ctx, const struct lane *lane, int32_t most)
{
	bool alone = lane->flying == 0 && ctx->runner.next >= ctx->runner.count;

	return alone || ctx->runner.phase->units > 0 || most < 2 ? most : most / 2;
}

void batch_learn(struct qret_ctx *ctx, struct lane *lane, int32_t rows,
                 const struct outcome *outcome)
{
	int64_t target_us = context_number(ctx, OPTION_STEP_TARGET_MS) * US_PER_MS;
	int64_t elapsed_us = outcome->elapsed_us < 1 ? 1 : outcome->elapsed_us;
	/* No more than was asked for, whatever a host's function says of itself. */
	int64_t found = smaller(outcome->deleted, rows);
	int64_t ideal = found * target_us / elapsed_us;
	int32_t most = capacity(ctx);

	if (outcome->deleted > 0 && elapsed_us > target_us && ideal < lane->rows)
		lane->rows = ideal < 1 ? 1 : (int32_t)ideal;
	else if (outcome->deleted >= rows && rows >= lane->rows)
		lane->rows = smaller(smaller(ideal, (int64_t)rows + rows / 2 + 1),
		                     largest(ctx, lane, most));
	if (window_may_grow(lane, outcome->done, elapsed_us < target_us / 2, found, most))
		lane->window++;
	else if (!outcome->done && lane->window > 1 && (int64_t)lane->window * lane->rows > most)
		lane->window = most < lane->rows ? 1 : (uint32_t)(most / lane->rows);
}
