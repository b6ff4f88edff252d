/* SPDX-License-Identifier: MIT */
/* What a server is and what is installed on it, read once a cycle. */
#ifndef QRET_LIB_FACTS_H
#define QRET_LIB_FACTS_H

#include <stdbool.h>
#include <stdint.h>

struct pg_result;

/* In the order of the columns of client/facts.sql. */
enum fact {
	FACT_READ_ONLY,
	FACT_LOG_TABLES,
	FACT_EVENT_FUNCTIONS,
	FACT_LOG_VERSIONED,
	FACT_EVENT_VERSIONED,
	FACT_RETENTION_V1,
	FACT_TXNS_PURGE_V1,
	FACT_MAX_WAIT_V1,
	FACT_CLEANUP_V1,
	FACT_RETENTION_V2,
	FACT_TXNS_PURGE_V2,
	FACT_MAX_WAIT_V2,
	FACT_CLEANUP_V2,
	FACT_FLOORS,
	FACT_LEASE,
	FACT_COUNT
};

struct facts {
	bool known;
	int64_t read_us;  /* when they were read, on our clock */
	int64_t clock_us; /* the server's now() when they were read */
	bool is[FACT_COUNT];
};

void facts_read(struct facts *facts, const struct pg_result *result);

#endif
