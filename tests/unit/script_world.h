/* SPDX-License-Identifier: MIT */
/* A small broker behind the scripted libpq: partitions with something to delete, and a context that retains them. */
#ifndef QRET_TESTS_SCRIPT_WORLD_H
#define QRET_TESTS_SCRIPT_WORLD_H

#include "script_pq.h"
#include "unit.h"

#include "context.h"

#define WORLD_PARTITIONS_MOST 3000
#define WORLD_CLOCK_US        1700000000000000

struct world {
	struct qret_ctx *ctx;
	int partitions;
	int64_t segments[WORLD_PARTITIONS_MOST]; /* left in each, deleted by retention */
	int64_t rows_us;   /* how long the deletion of one row takes, as steps tell */
	bool second_steps; /* the v2 functions are installed */
	bool floors;       /* discovery by floors: only partitions with something left are listed */
	bool other_phases; /* partitions have cutoffs for phases 2 and 3 as well */
	int64_t deleted;   /* by steps that were answered */
	int64_t flying,
		flying_most; /* rows of the steps between send and answer; counted by the caller's hooks */
	/* Looks first; NULL leaves the answer to the world. */
	const char *(*before)(struct script_call *call);

	char log[16384]; /* every record, one a line */
	int log_records;
};
extern struct world world;

/* A fresh script and world, without a context: world_end wants one all the same, or NULL. */
void world_script(int partitions, int64_t segments);

/* A fresh script, world and context, connected, with gate = session and the partition clean-up off. */
void world_begin(int partitions, int64_t segments);

/* The same with the host's connection attached. */
void world_begin_attached(int partitions, int64_t segments);

/* One whose statements come in this order. */
void world_begin_scripted(const struct script_entry *entries, size_t count);

/* Frees the context and ends the script. */
void world_end(void);

void world_set(const char *option, const char *value);

/* No gate, and no sign of life for so long, which would end by chance a sleep that nothing else does. */
#define WORLD_SILENCE_US 86400000000
void world_set_silent(void);

/* A cycle and its report. */
int world_cycle(struct qret_cycle_report *ret_report);

/* Segments that are left in all partitions. */
int64_t world_left(void);

/* The answer to facts.sql: everything is installed but floors and lease, second steps as told. */
const char *world_facts(bool second_steps);

/* The same of a log with first functions alone. */
#define WORLD_FACTS_V1 "@1700000000000000 f t f t f t t t t f f f f f f - - -"

/* How often this text is in the log. */
int world_logged(const char *text);

/* Partition number and rows of a step's decoded parameters. */
int world_partition_of(const struct script_call *call);
int32_t world_rows_of(const struct script_call *call);

#endif
