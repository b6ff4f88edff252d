/* SPDX-License-Identifier: MIT */
/* The first states of every plan: a connection is there, and what it leads to is known. */
#include <stdio.h>

#include "clock.h"
#include "settings.h"
#include "states.h"
#include "template.h"

#define FACTS_FRESH_US (5 * US_PER_SECOND)

static int lost_gate(struct qret_ctx *ctx)
{
	struct error error;

	leader_forget(&ctx->gate);
	error_set(&error, QRET_ERR_LEADER_LOST, true, "take the gate again",
	          "the session that held the gate is gone");
	return state_fail(ctx, &error);
}

int state_open(struct qret_ctx *ctx)
{
	struct session *session = &ctx->lanes[0].session;
	struct error error;
	int rc;

	if (wake_stopped(&ctx->wake) && ctx->cycle.plan != PLAN_RELEASE) {
		if (session->state == SESSION_CONNECTING || session->state == SESSION_SETTING_UP)
			session_abandon(session);
		return state_stop(ctx);
	}
	if (ctx->attached) {
		rc = session->state == SESSION_READY ? QRET_DONE : session_adopt(session, &error);
	} else {
		if (session->state == SESSION_READY && !session_alive(session, ctx->gate.held)) {
			session_abandon(session);
			log_plain(&ctx->log, LOG_RECONNECT);
		}
		if (session->state == SESSION_CLOSED || session->state == SESSION_LOST) {
			if (ctx->gate.held && leader_is_session(ctx))
				return lost_gate(ctx);
			ctx->facts.known = false;
			floors_forget_hints(&ctx->floors);
			cycle_open_session(ctx, session);
		}
		rc = session_process(session, &error);
	}
	if (rc == QRET_WAIT)
		return QRET_WAIT;
	/* A host in the middle of something with its connection may release the gate when that is over. */
	if (rc == QRET_ERR_STATE && ctx->cycle.plan == PLAN_RELEASE) {
		ctx->cycle.error = error;
		return state_move(ctx, STATE_END);
	}
	if (rc != QRET_DONE)
		return state_fail(ctx, &error);
	if (ctx->cycle.plan == PLAN_OPEN)
		return state_move(ctx, STATE_END);
	if (ctx->cycle.plan == PLAN_RELEASE)
		return state_leave(ctx);
	return state_move(ctx, STATE_FACTS);
}

static const char *bind_facts(struct qret_ctx *ctx, struct parameters *parameters)
{
	parameter_bool(parameters, horizon_look(ctx));
	return context_statement(ctx, STATEMENT_FACTS);
}

static int schema_error(struct qret_ctx *ctx, const char *schema, const char *what)
{
	struct error error;

	error_set(&error, QRET_ERR_SCHEMA, false,
	          "install the part, or check the options that name schemas and tables",
	          "schema %s: %s", schema, what);
	return state_fail(ctx, &error);
}

/* Whether all that this plan calls is there. */
static int check_facts(struct qret_ctx *ctx)
{
	const char *log_schema = option_text(&ctx->options, OPTION_LOG_SCHEMA);
	const char *event_schema = option_text(&ctx->options, OPTION_EVENT_SCHEMA);
	char missing[128];

	if (context_number(ctx, OPTION_GATE) == GATE_LEASE && !ctx->facts.is[FACT_LEASE] &&
	    ctx->cycle.plan != PLAN_WORKLIST)
		return schema_error(ctx, state_runs(ctx, ENGINES_LOG) ? log_schema : event_schema,
		                    "function retention_lease_claim_v1 is missing");
	if (ctx->cycle.plan == PLAN_TAKE)
		return QRET_DONE;
	if (state_runs(ctx, ENGINES_LOG) && !ctx->facts.is[FACT_LOG_TABLES])
		return schema_error(ctx, log_schema, "table log_partitions is missing");
	if (context_number(ctx, OPTION_WORK_LIST) == WORK_LIST_DUE &&
	    state_runs(ctx, ENGINES_LOG) && !ctx->facts.is[FACT_FLOORS])
		return schema_error(ctx, log_schema,
		                    "option work_list is due, and the floors are not installed");
	for (int32_t id = 1; id <= PHASE_COUNT && ctx->cycle.plan != PLAN_WORKLIST; id++) {
		const struct phase *phase = phase_find(id);
		const char *name;

		if (ctx->cycle.plan == PLAN_STEP ? id != ctx->cycle.phase
		                                 : !state_runs(ctx, phase->engine))
			continue;
		name = phase_missing_function(ctx, phase);
		if (name == NULL)
			continue;
		snprintf(missing, sizeof(missing), "function %s_v%d is missing", name,
		         context_number(ctx, OPTION_STEP_VERSION) == STEP_VERSION_2 &&
		                         phase->engine == ENGINES_LOG
		                 ? 2
		                 : 1);
		return schema_error(ctx, phase->engine == ENGINES_LOG ? log_schema : event_schema,
		                    missing);
	}
	return QRET_DONE;
}

/* Where a plan goes once it knows the server. */
static int known(struct qret_ctx *ctx)
{
	switch (ctx->cycle.plan) {
	case PLAN_WORKLIST:
		return states_begin_work(ctx);
	case PLAN_STEP:
		/* The server's now(), for the cutoffs of phases with units of their own. */
		ctx->cycle.clock_us = ctx->facts.clock_us;
		return state_move(ctx, STATE_RUN);
	default:
		return state_move(ctx, STATE_GATE);
	}
}

/* The first part whose version is still to be checked: after `part`, NULL for none. */
static const char *next_part(const struct qret_ctx *ctx, const char *part)
{
	if (part == NULL && state_runs(ctx, ENGINES_LOG) && ctx->facts.is[FACT_LOG_VERSIONED])
		return "log";
	if ((part == NULL || part[0] == 'l') && state_runs(ctx, ENGINES_EVENT) &&
	    ctx->facts.is[FACT_EVENT_VERSIONED])
		return "event";
	return NULL;
}

/*
 * Steps by hand follow each other closely, and a partition's cutoffs are given: what was just
 * read serves.
 */
static bool still_known(const struct qret_ctx *ctx)
{
	return ctx->cycle.plan == PLAN_STEP && phase_find(ctx->cycle.phase)->units == 0 &&
	       ctx->facts.known && !ctx->facts.is[FACT_READ_ONLY] &&
	       qret_now_us() - ctx->facts.read_us < FACTS_FRESH_US;
}

int state_facts(struct qret_ctx *ctx)
{
	struct pg_result *answer = NULL;
	struct error error;
	int rc;

	if (!ctx->cycle.asked && still_known(ctx))
		return known(ctx);
	rc = state_ask(ctx, bind_facts, &answer, &error);
	if (rc != QRET_DONE)
		return state_no_answer(ctx, rc, &error);
	facts_read(&ctx->facts, answer);
	horizon_read(ctx, answer);
	result_free(answer);
	if (ctx->facts.is[FACT_READ_ONLY] && ctx->cycle.plan != PLAN_WORKLIST) {
		ctx->cycle.outcome = QRET_STANDBY;
		return state_leave(ctx);
	}
	if (check_facts(ctx) != QRET_DONE)
		return QRET_MORE;
	if (ctx->cycle.plan == PLAN_TAKE)
		return state_move(ctx, STATE_GATE);
	ctx->cycle.part = next_part(ctx, NULL);
	return ctx->cycle.part != NULL ? state_move(ctx, STATE_VERSION) : known(ctx);
}

static const char *bind_version(struct qret_ctx *ctx, struct parameters *parameters)
{
	parameter_text(parameters, ctx->cycle.part);
	return ctx->cycle.part[0] == 'e' ? ctx->statements.event_version
	                                 : ctx->statements.log_version;
}

int state_version(struct qret_ctx *ctx)
{
	struct pg_result *answer = NULL;
	struct error error;
	int rc = state_ask(ctx, bind_version, &answer, &error);
	int64_t version;

	if (rc != QRET_DONE)
		return state_no_answer(ctx, rc, &error);
	version = result_integer(answer, 0, 0, 0);
	result_free(answer);
	/* 0: nothing of ours is installed; a host's own functions serve by their contract. */
	if (version != 0 && version != SCHEMA_VERSION) {
		error_set(&error, QRET_ERR_SCHEMA, false,
		          version < SCHEMA_VERSION ? "install the part again"
		                                   : "use a library that is as new as the schema",
		          "part \"%s\" is installed in version %lld, this library needs %d",
		          ctx->cycle.part, (long long)version, SCHEMA_VERSION);
		return state_fail(ctx, &error);
	}
	ctx->cycle.part = next_part(ctx, ctx->cycle.part);
	return ctx->cycle.part != NULL ? QRET_MORE : known(ctx);
}
