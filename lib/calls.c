/* SPDX-License-Identifier: MIT */
/* The public calls that reach the server: arguments are checked, then a plan is started and run. */
#include <string.h>

#include "context.h"
#include "schema.h"
#include "struct_size.h"
#include "wait.h"

#define REPORT_LEAST 144 /* of struct qret_cycle_report: its first version's shortest form */

/* ---- Connection ------------------------------------------------------------------------------ */

static int enter_connecting(struct qret_ctx *ctx)
{
	int rc = context_enter_idle(ctx);

	if (rc == QRET_DONE && ctx->gate.held)
		return context_fail(ctx, QRET_ERR_STATE, "call qret_gate_release first",
		                    "the gate is held");
	if (rc == QRET_DONE && ctx->attached)
		return context_fail(ctx, QRET_ERR_STATE, "call qret_detach first",
		                    "a connection is attached");
	return rc;
}

static void close_owned(struct qret_ctx *ctx)
{
	for (int i = 0; i < LANES_MAX; i++)
		session_abandon(&ctx->lanes[i].session);
	target_free(ctx->target);
	ctx->target = NULL;
	ctx->facts.known = false;
}

int qret_connect(struct qret_ctx *ctx, const char *conninfo)
{
	struct target *target = NULL;
	int rc = enter_connecting(ctx);

	if (rc == QRET_DONE)
		rc = target_new(conninfo, &target, &ctx->error);
	if (rc != QRET_DONE)
		return rc;
	close_owned(ctx);
	ctx->target = target;
	return QRET_DONE;
}

int qret_attach(struct qret_ctx *ctx, struct pg_conn *connection)
{
	struct session *session;
	int rc = enter_connecting(ctx);

	if (rc != QRET_DONE)
		return rc;
	if (connection == NULL)
		return context_fail(ctx, QRET_ERR_ARGUMENT, NULL, "the connection is NULL");
	if (!session_can_adopt(connection))
		return context_fail(ctx, QRET_ERR_STATE,
		                    "end its transaction, read its results, leave pipeline mode",
		                    "the connection is not open and idle");
	close_owned(ctx);
	session = &ctx->lanes[0].session;
	session->connection = connection;
	session->borrowed = true;
	session->tainted = false;
	session->state = SESSION_CLOSED;
	ctx->attached = true;
	/* It may lead to another server than the last one did. */
	floors_forget_hints(&ctx->floors);
	return QRET_DONE;
}

int qret_detach(struct qret_ctx *ctx, int32_t *ret_tainted)
{
	struct session *session;
	int rc = context_enter(ctx);

	if (rc != QRET_DONE)
		return rc;
	if (!ctx->attached)
		return context_fail(ctx, QRET_ERR_STATE, NULL, "no connection is attached");
	session = &ctx->lanes[0].session;
	if (cycle_in_progress(ctx))
		cycle_drop(ctx);
	/* A gate that is still held would stay with the host's session unseen. */
	if (ctx->gate.held && leader_is_session(ctx))
		session->tainted = true;
	leader_forget(&ctx->gate);
	if (ret_tainted != NULL)
		*ret_tainted = session->tainted;
	session->connection = NULL;
	session->borrowed = session->tainted = false;
	session->state = SESSION_CLOSED;
	ctx->attached = ctx->facts.known = false;
	return QRET_DONE;
}

/* ---- Plans ----------------------------------------------------------------------------------- */

/* What every call that contacts the server needs first. */
static int enter_server(struct qret_ctx *ctx)
{
	int rc = context_enter_idle(ctx);

	if (rc != QRET_DONE)
		return rc;
	if (!ctx->attached && ctx->target == NULL)
		return context_fail(ctx, QRET_ERR_STATE, "call qret_connect or qret_attach first",
		                    "there is no connection to use");
	if (context_number(ctx, OPTION_POOLER) == POOLER_TRANSACTION && leader_is_session(ctx))
		return context_fail(
			ctx, QRET_ERR_OPTION,
			"set gate to lease, or to none if the host elects its leader",
			"option gate: a session lock does not survive behind a transaction pooler, which "
			"gives every transaction another server connection");
	if (wake_stopped(&ctx->wake))
		return QRET_STOPPED;
	if (ctx->statements_current)
		return QRET_DONE;
	rc = statements_build(&ctx->statements, &ctx->options);
	if (rc != QRET_DONE)
		return context_fail(ctx, rc, NULL, "out of memory");
	ctx->statements_current = true;
	/* What the sessions have prepared belongs to the texts before. */
	for (int i = 0; i < LANES_MAX && !ctx->attached; i++)
		session_abandon(&ctx->lanes[i].session);
	floors_forget(&ctx->floors);
	ctx->facts.known = false;
	return QRET_DONE;
}

int context_open(struct qret_ctx *ctx)
{
	int rc = enter_server(ctx);

	if (rc != QRET_DONE)
		return rc;
	cycle_start(ctx, PLAN_OPEN);
	return cycle_run(ctx);
}

int qret_worklist_build(struct qret_ctx *ctx, struct qret_worklist **ret_list)
{
	struct qret_worklist *list;
	int rc = enter_server(ctx);

	if (rc != QRET_DONE)
		return rc;
	if (ret_list == NULL)
		return context_fail(ctx, QRET_ERR_ARGUMENT, NULL, "ret_list is NULL");
	list = worklist_new();
	if (list == NULL)
		return context_fail(ctx, QRET_ERR_NOMEM, NULL, "out of memory");
	cycle_start(ctx, PLAN_WORKLIST);
	ctx->cycle.list = list;
	rc = cycle_run(ctx);
	if (rc == QRET_DONE)
		*ret_list = list;
	else
		qret_worklist_free(list);
	return rc;
}

/* Checks the item a step is for and copies it into the plan's first unit. */
static int take_item(struct qret_ctx *ctx, const struct phase *phase,
                     const struct qret_work_item *item)
{
	struct qret_work_item own = { 0 };

	if (phase == NULL)
		return context_fail(ctx, QRET_ERR_ARGUMENT, "phases are 1 to 6",
		                    "there is no such phase");
	if ((phase->units == 0) != (item != NULL))
		return context_fail(ctx, QRET_ERR_ARGUMENT,
		                    "phases 1 to 3 take an item of the work list, the others NULL",
		                    phase->units == 0 ? "the item is NULL"
		                                      : "this phase takes no item");
	if (item != NULL &&
	    (struct_read(&own, item, sizeof(own), sizeof(own)) != QRET_DONE || own.flags != 0))
		return context_fail(ctx, QRET_ERR_ARGUMENT,
		                    "set size to sizeof(struct qret_work_item), flags to 0",
		                    "the item's size, flags or tail are not understood");
	memset(ctx->cycle.units, 0, sizeof(ctx->cycle.units));
	ctx->cycle.units[0].item = own;
	return QRET_DONE;
}

/* Phases with units of their own go on where the last step by hand left off. */
static void begin_step(struct qret_ctx *ctx, const struct phase *phase)
{
	uint32_t first = phase->units > 1 ? ctx->phases[phase->id - 1].unit : 0;
	uint32_t count = phase->units == 0 ? 1 : phase->units - first;

	for (uint32_t i = 0; i < count && phase->units > 0; i++)
		ctx->cycle.units[i].unit = first + i;
	runner_reset(ctx);
	runner_begin(ctx, phase, ctx->cycle.units, count, true);
}

static void write_result(struct qret_ctx *ctx, const struct phase *phase,
                         struct qret_step_result *ret_result)
{
	const struct outcome *outcome = &ctx->runner.outcome;
	struct qret_step_result result = { 0 };

	result.done = outcome->done;
	result.rows_deleted = outcome->deleted;
	result.messages_deleted = phase->id == QRET_PHASE_TXNS_PURGE ? 0 : outcome->messages;
	result.watermark = phase->units == 0 ? outcome->watermark : -1;
	result.elapsed_us = outcome->elapsed_us;
	struct_write(ret_result, &result, sizeof(result), sizeof(result));
}

int qret_step(struct qret_ctx *ctx, int32_t phase_id, const struct qret_work_item *item,
              struct qret_step_result *ret_result)
{
	const struct phase *phase = phase_find(phase_id);
	struct qret_cycle_report report;
	int rc = context_enter_idle(ctx);

	if (rc == QRET_DONE)
		rc = take_item(ctx, phase, item);
	if (rc != QRET_DONE)
		return rc;
	if (struct_check(ret_result, sizeof(struct qret_step_result)) != QRET_DONE)
		return context_fail(ctx, QRET_ERR_ARGUMENT,
		                    "set size to sizeof(struct qret_step_result)",
		                    "ret_result is NULL or its size is wrong");
	rc = enter_server(ctx);
	if (rc != QRET_DONE)
		return rc;
	if (context_number(ctx, OPTION_GATE) == GATE_LEASE && !ctx->gate.held)
		return context_fail(ctx, QRET_ERR_STATE, "call qret_gate_take first",
		                    "the lease is not held");
	/* The counts of a step by hand are not a cycle's. */
	report = ctx->report;
	ctx->cycle.phase = phase_id;
	cycle_start(ctx, PLAN_STEP);
	begin_step(ctx, phase);
	rc = cycle_run(ctx);
	ctx->report = report;
	if (rc == QRET_DONE || rc == QRET_PARTIAL)
		write_result(ctx, phase, ret_result);
	return rc;
}

int qret_gate_take(struct qret_ctx *ctx)
{
	int rc = enter_server(ctx);

	if (rc != QRET_DONE)
		return rc;
	if (ctx->gate.held)
		return context_fail(ctx, QRET_ERR_STATE, NULL, "the gate is held already");
	cycle_start(ctx, PLAN_TAKE);
	return cycle_run(ctx);
}

int qret_gate_release(struct qret_ctx *ctx)
{
	int rc = context_enter_idle(ctx);

	if (rc != QRET_DONE)
		return rc;
	if (!ctx->gate.held)
		return context_fail(ctx, QRET_ERR_STATE, NULL, "the gate is not held");
	cycle_start(ctx, PLAN_RELEASE);
	return cycle_run(ctx);
}

/* ---- A full cycle ---------------------------------------------------------------------------- */

/*
 * A cycle that its options, or memory, do not let begin is over as soon as it was due: a host that
 * begins when due would try again at once, and for ever. One that is out of order never was due.
 */
static int refuse_cycle(struct qret_ctx *ctx, int rc)
{
	if (rc == QRET_ERR_OPTION || rc == QRET_ERR_NOMEM) {
		cadence_started(&ctx->cadence, qret_now_us());
		cadence_ended(&ctx->cadence, qret_now_us(), context_number(ctx, OPTION_INTERVAL_MS),
		              false);
	}
	return rc;
}

int qret_cycle_begin(struct qret_ctx *ctx)
{
	struct qret_cycle_report last;
	int rc = enter_server(ctx);

	if (rc != QRET_DONE)
		return refuse_cycle(ctx, rc);
	last = ctx->report;
	memset(&ctx->report, 0, sizeof(ctx->report));
	ctx->report.size = sizeof(ctx->report);
	ctx->report.outcome = QRET_MORE;
	/* Known until this cycle knows better. */
	ctx->report.consecutive_failures = last.consecutive_failures;
	ctx->report.last_success_us = last.last_success_us;
	ctx->report.oldest_overdue_us = last.oldest_overdue_us;
	ctx->had_cycle = true;
	cadence_started(&ctx->cadence, qret_now_us());
	cycle_start(ctx, PLAN_CYCLE);
	runner_reset(ctx);
	return QRET_DONE;
}

int qret_cycle_process(struct qret_ctx *ctx)
{
	int rc = context_enter(ctx);

	if (rc != QRET_DONE)
		return rc;
	if (!cycle_in_progress(ctx)) {
		wake_drain(&ctx->wake);
		return context_fail(ctx, QRET_ERR_STATE, "call qret_cycle_begin first",
		                    "no cycle is in progress");
	}
	return cycle_advance(ctx);
}

static int copy_report(struct qret_ctx *ctx, struct qret_cycle_report *ret_report)
{
	struct qret_cycle_report report = ctx->report;

	if (cycle_in_progress(ctx)) {
		report.elapsed_us = qret_now_us() - ctx->cycle.started_us;
		report.clock_us = ctx->cycle.clock_us == QRET_CUTOFF_OFF ? 0 : ctx->cycle.clock_us;
		for (int i = 0; i < LANES_MAX; i++)
			report.round_trips += ctx->lanes[i].session.round_trips;
	}
	return struct_write(ret_report, &report, sizeof(report), REPORT_LEAST);
}

int qret_cycle_get_report(struct qret_ctx *ctx, struct qret_cycle_report *ret_report)
{
	int rc = context_enter(ctx);

	if (rc != QRET_DONE)
		return rc;
	if (!ctx->had_cycle)
		return context_fail(ctx, QRET_ERR_STATE, NULL, "there was no cycle yet");
	if (copy_report(ctx, ret_report) != QRET_DONE)
		return context_fail(ctx, QRET_ERR_ARGUMENT,
		                    "set size to sizeof(struct qret_cycle_report)",
		                    "ret_report is NULL or its size is wrong");
	return QRET_DONE;
}

/* The report of a cycle that could not even begin. */
static void write_refusal(struct qret_ctx *ctx, int outcome, struct qret_cycle_report *ret_report)
{
	struct qret_cycle_report report = { 0 };

	report.outcome = outcome;
	report.consecutive_failures = ctx->report.consecutive_failures;
	report.last_success_us = ctx->report.last_success_us;
	report.oldest_overdue_us = ctx->report.oldest_overdue_us;
	struct_write(ret_report, &report, sizeof(report), REPORT_LEAST);
}

int qret_run_cycle(struct qret_ctx *ctx, struct qret_cycle_report *ret_report)
{
	int rc = context_enter(ctx);

	if (rc != QRET_DONE)
		return rc;
	if (ret_report != NULL && struct_check(ret_report, REPORT_LEAST) != QRET_DONE)
		return context_fail(ctx, QRET_ERR_ARGUMENT,
		                    "set size to sizeof(struct qret_cycle_report)",
		                    "the report's size is wrong");
	rc = qret_cycle_begin(ctx);
	if (rc != QRET_DONE) {
		if (ret_report != NULL)
			write_refusal(ctx, rc, ret_report);
		return rc;
	}
	rc = cycle_run(ctx);
	if (ret_report != NULL)
		copy_report(ctx, ret_report);
	return rc;
}
