/* SPDX-License-Identifier: MIT */
/* Expands the embedded client statements once per change of the options. */
#include "statement.h"

#include <stdlib.h>
#include <string.h>

#include "identifier.h"
#include "qretention.h"
#include "template.h"

const struct metrics_table metrics_tables[METRICS_TABLES] = {
	{ "worker_metrics", "bucket_time" },       { "queue_lag_metrics", "bucket_time" },
	{ "queue_parked_replica", "bucket_time" }, { "retention_history", "executed_at" },
	{ "system_metrics", "timestamp" },
};

static int build_metrics(struct statements *statements, const struct options *options)
{
	for (int i = 0; i < METRICS_TABLES; i++) {
		char table[RELATION_QUOTED_BYTES], column[RELATION_QUOTED_BYTES];
		const struct template_name names[] = { { "table", table },
			                               { "column", column },
			                               { NULL, NULL } };

		relation_quote(metrics_tables[i].table, option_text(options, OPTION_LOG_SCHEMA),
		               table);
		identifier_quote(metrics_tables[i].column, column);
		statements->metrics[i] = template_expand(sql_statements[STATEMENT_METRICS_PURGE],
		                                         names);
		if (statements->metrics[i] == NULL)
			return QRET_ERR_NOMEM;
	}
	return QRET_DONE;
}

static char *build_in_schema(enum statement statement, const char *schema)
{
	char quoted[RELATION_QUOTED_BYTES];
	const struct template_name names[] = { { "schema", quoted }, { NULL, NULL } };

	identifier_quote(schema, quoted);
	return template_expand(sql_statements[statement], names);
}

static int build_parts(struct statements *statements, const struct options *options)
{
	const char *log_schema = option_text(options, OPTION_LOG_SCHEMA);
	const char *event_schema = option_text(options, OPTION_EVENT_SCHEMA);

	statements->log_version = build_in_schema(STATEMENT_SCHEMA_VERSION, log_schema);
	statements->event_version = build_in_schema(STATEMENT_SCHEMA_VERSION, event_schema);
	statements->log_install = build_in_schema(STATEMENT_INSTALL_OBJECT, log_schema);
	statements->event_install = build_in_schema(STATEMENT_INSTALL_OBJECT, event_schema);
	return statements->log_version == NULL || statements->event_version == NULL ||
	                       statements->log_install == NULL || statements->event_install == NULL
	               ? QRET_ERR_NOMEM
	               : QRET_DONE;
}

int statements_build(struct statements *statements, const struct options *options)
{
	struct template_names *names = template_names_new(options);
	int rc = names == NULL ? QRET_ERR_NOMEM : QRET_DONE;

	statements_free(statements);
	for (int i = 0; i < STATEMENT_COUNT && rc == QRET_DONE; i++) {
		statements->texts[i] = template_expand(sql_statements[i],
		                                       template_names_list(names));
		if (statements->texts[i] == NULL)
			rc = QRET_ERR_NOMEM;
	}
	template_names_free(names);
	if (rc == QRET_DONE)
		rc = build_metrics(statements, options);
	if (rc == QRET_DONE)
		rc = build_parts(statements, options);
	if (rc != QRET_DONE)
		statements_free(statements);
	return rc;
}

void statements_free(struct statements *statements)
{
	for (int i = 0; i < STATEMENT_COUNT; i++)
		free(statements->texts[i]);
	for (int i = 0; i < METRICS_TABLES; i++)
		free(statements->metrics[i]);
	free(statements->log_version);
	free(statements->event_version);
	free(statements->log_install);
	free(statements->event_install);
	memset(statements, 0, sizeof(*statements));
}
