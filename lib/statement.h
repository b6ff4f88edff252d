/* SPDX-License-Identifier: MIT */
/* The library's own statements with the names of the options filled in. */
#ifndef QRET_LIB_STATEMENT_H
#define QRET_LIB_STATEMENT_H

#include "options.h"
#include "sql_embedded.h"

#define METRICS_TABLES 5

/* The tables that the metrics purge keeps short, and the column that dates their rows. */
extern const struct metrics_table {
	const char *table, *column;
} metrics_tables[METRICS_TABLES];

struct statements {
	char *texts[STATEMENT_COUNT];
	char *metrics[METRICS_TABLES];     /* STATEMENT_METRICS_PURGE for each of them */
	char *log_version, *event_version; /* STATEMENT_SCHEMA_VERSION in either schema */
	char *log_install, *event_install; /* STATEMENT_INSTALL_OBJECT likewise */
};

/* Fills the names in; what was there is freed. QRET_DONE or QRET_ERR_NOMEM. */
int statements_build(struct statements *statements, const struct options *options);
void statements_free(struct statements *statements);

#endif
