/* SPDX-License-Identifier: MIT */
/*
 * The phases, one row each: where work comes from, when, which step, what it counts, what a
 * failure means.
 */
#ifndef QRET_LIB_PHASE_H
#define QRET_LIB_PHASE_H

#include <stdbool.h>
#include <stdint.h>

#include "statement.h"
#include "value.h"
#include "work.h"

#define PHASE_COUNT 6
#define EVENT_ARMS  4

enum phase_failure {
	FAILURE_PARTIAL, /* the item is skipped and the cycle ends PARTIAL */
	FAILURE_LOGGED   /* said in the log, and the cycle is none the worse */
};

struct qret_ctx;

/* What a phase keeps between steps and cycles. */
struct phase_state {
	int64_t next_us; /* when its sub-cadence lets it run again */
	bool one_step;   /* event prune beside a busy host, or after a cycle that ended early */
	uint32_t unit;   /* steps by hand, or one a cycle: the unit to go on with */
	char cursor[CURSOR_BYTES];
	uint8_t cursor_uuid[16];
	bool has_cursor;
	/* event prune, an arm each: what the last run ended with, and how many runs there were */
	char hints[EVENT_ARMS][CURSOR_BYTES];
	uint32_t runs[EVENT_ARMS];
	bool hinted; /* this run of an arm began at its hint */
	/* event prune, an arm each: where a run that came to nothing is gone on with; "" at the start */
	char resume[EVENT_ARMS][CURSOR_BYTES];
	uint32_t prunes; /* whole ones, begun */
};

struct phase {
	int32_t id;
	const char *name;
	int engine;     /* ENGINES_LOG or ENGINES_EVENT */
	uint32_t units; /* 0: partitions of the work list; else that many units of its own */
	bool sized;     /* batch size follows from time */
	bool cursored;  /* a step may delete nothing and yet move on */
	enum phase_failure failure;
	int failure_event; /* enum log_event */

	/* Whether it runs in this cycle; stamps the sub-cadence. NULL: always. */
	bool (*begin)(struct qret_ctx *ctx);
	/* Whether this partition has anything to do with it; NULL for units. */
	bool (*applies)(const struct qret_ctx *ctx, const struct work *work);
	/*
	 * Binds one step; returns the text to send. guarded: refuse cutoffs in the server's
	 * future.
	 */
	const char *(*bind)(struct qret_ctx *ctx, const struct work *work, int32_t rows,
	                    bool guarded, struct parameters *parameters);
	void (*read)(const struct pg_result *result, int32_t rows, struct outcome *ret_outcome);
	void (*count)(struct qret_cycle_report *report, const struct work *work,
	              const struct outcome *outcome);
};

/* NULL for an unknown id. */
const struct phase *phase_find(int32_t id);

/* Whether the engine of a phase is switched on. */
bool phase_enabled(const struct qret_ctx *ctx, const struct phase *phase);

/* Keeps, or at its end forgets, where the phase's next step goes on. */
void phase_keep_cursor(struct qret_ctx *ctx, const struct phase *phase, const struct work *work,
                       const struct outcome *outcome);

/*
 * Where the prune's next step of an arm begins: at its cursor; for a new run, at the start, which is
 * NULL. Where it took long to find nothing from there, entries of what is gone are in the way; then
 * a run begins where the last one left nothing. That is a hint: a row can commit late below it, so
 * the first run and every tenth begin at the start all the same.
 */
const char *phase_prune_after(struct qret_ctx *ctx, uint32_t arm);
void phase_reset_cursor(struct qret_ctx *ctx, const struct phase *phase);

/*
 * Whether the prune is to leave an arm for now, since too many of its steps in a row were refused
 * everything they tried. The next run goes on where this one ended, and so does the one after a run
 * that a budget or a stop ended among such steps: whatever is behind them is reached.
 *
 * A context's first prune has a minute for them instead: of a program that runs once a day there is
 * no next run that knows of this one.
 */
bool phase_prune_tired(const struct qret_ctx *ctx, const struct work *work);
void phase_count_barren(struct work *work, const struct outcome *outcome);

/*
 * How many events the prune's next step may delete, within event_prune_limit. 0: it only looks, so
 * that a limit which was just enough is told from one that left something.
 */
int32_t phase_prune_events(const struct qret_ctx *ctx);

/* Whether a prune that takes a step a cycle is in the middle of its round. */
bool phase_prune_unfinished(const struct qret_ctx *ctx);

/* The prune's next interval begins now. */
void phase_stamp_event_prune(struct qret_ctx *ctx);

/* The name of a unit, for log lines. */
const char *phase_unit(const struct phase *phase, uint32_t unit);

/* The batch size that a phase starts with. */
int32_t phase_rows(const struct qret_ctx *ctx, const struct phase *phase);

/* What the functions of the enabled engines lack; NULL if nothing. */
const char *phase_missing_function(const struct qret_ctx *ctx, const struct phase *phase);

#endif
