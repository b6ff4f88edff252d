/* SPDX-License-Identifier: MIT */
/*
 * The context: what a host holds. Everything it owns hangs here; the modules below take it from
 * here.
 */
#ifndef QRET_LIB_CONTEXT_H
#define QRET_LIB_CONTEXT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include "cadence.h"
#include "cycle.h"
#include "error.h"
#include "facts.h"
#include "floors.h"
#include "horizon.h"
#include "leader.h"
#include "log.h"
#include "metrics.h"
#include "options.h"
#include "phase.h"
#include "runner.h"
#include "session.h"
#include "statement.h"
#include "wake.h"
#include "worklist.h"

#define LANES_MAX 16

struct qret_ctx {
	pid_t owner; /* the process that created it */
	bool in_callback;
	struct error error; /* the last failure */
	struct options options;
	struct statements statements;
	bool statements_current;
	struct log log;
	struct metrics metrics;

	struct target *target; /* owned connections go there; NULL: none configured */
	bool attached;         /* lane 0 is borrowed */
	struct lane lanes[LANES_MAX];

	struct wake wake;
	atomic_int busy; /* the host has work of its own */
	struct cadence cadence;
	struct facts facts;
	struct gate gate;
	struct cycle cycle;
	struct horizon horizon;
	struct pager pager;
	struct floors floors;
	struct runner runner;
	struct phase_state phases[PHASE_COUNT];
	struct qret_cycle_report report; /* of the running or last cycle */
	bool had_cycle;
	bool standby_told;
};

/* What a call needs before it may do anything; clears the error detail. */
int context_enter(struct qret_ctx *ctx);

/* The same for calls that need a context at rest: no cycle in progress. */
int context_enter_idle(struct qret_ctx *ctx);

/* A failure of ours, recorded on the context. */
int context_fail(struct qret_ctx *ctx, int code, const char *hint, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

int64_t context_number(const struct qret_ctx *ctx, enum option option);
const char *context_statement(const struct qret_ctx *ctx, enum statement statement);

#endif
