/* SPDX-License-Identifier: MIT */
/* The SQLSTATE table. Order does not matter: the longest prefix wins. */
#include "sqlstate.h"

#include <stddef.h>
#include <string.h>

#include "qretention.h"

static const struct sqlstate_rule rules[] = {
	/* our own */
	{ SQLSTATE_LATE_LOCK_LOST, QRET_ERR_SQL, SQLSTATE_LOCKED, "" },
	{ SQLSTATE_SEEK_BELOW_BATCH, QRET_ERR_SQL, SQLSTATE_LOCKED, "" },
	{ SQLSTATE_FENCE_LOST, QRET_ERR_LEADER_LOST, SQLSTATE_CYCLE,
	  "another instance took the lease over; it leads now" },
	{ SQLSTATE_LEASE_NOT_HELD, QRET_ERR_LEADER_LOST, SQLSTATE_CYCLE,
	  "another instance took the lease over; it leads now" },
	{ SQLSTATE_STREAMS_CHANGED, QRET_ERR_SCHEMA, SQLSTATE_PERMANENT,
	  "install part \"log\" again" },
	{ SQLSTATE_WRONG_ISOLATION, QRET_ERR_SQL, SQLSTATE_PERMANENT,
	  "run the step under READ COMMITTED" },
	{ SQLSTATE_FUTURE_CUTOFF, QRET_ERR_ARGUMENT, SQLSTATE_ITEM,
	  "cutoffs come from the server's clock: build the work list again" },
	/* connection and server state */
	{ "08", QRET_ERR_CONNECTION, SQLSTATE_CYCLE, "" },
	{ "08P01", QRET_ERR_CONNECTION, SQLSTATE_PERMANENT,
	  "a pooler may have refused a startup parameter: see option pooler" },
	{ "57P", QRET_ERR_CONNECTION, SQLSTATE_CYCLE,
	  "the server is shutting down, starting up, or ended the session" },
	{ "57P04", QRET_ERR_CONNECTION, SQLSTATE_PERMANENT, "the database was dropped" },
	{ "25006", QRET_ERR_SQL, SQLSTATE_CYCLE,
	  "the server became read-only: connect to the primary" },
	{ "25P03", QRET_ERR_CONNECTION, SQLSTATE_CYCLE, "" },
	{ "25P04", QRET_ERR_CONNECTION, SQLSTATE_CYCLE, "" },
	{ "53", QRET_ERR_SQL, SQLSTATE_CYCLE, "the server is out of a resource" },
	{ "53300", QRET_ERR_CONNECTION, SQLSTATE_CYCLE,
	  "raise max_connections or use fewer lanes" },
	{ "58", QRET_ERR_SQL, SQLSTATE_CYCLE, "see the server's log" },
	{ "XX", QRET_ERR_SQL, SQLSTATE_ITEM, "see the server's log" },
	/* who and what */
	{ "28", QRET_ERR_CONNECTION, SQLSTATE_PERMANENT, "check user, password and pg_hba.conf" },
	{ "3D000", QRET_ERR_CONNECTION, SQLSTATE_PERMANENT, "create the database or name another" },
	{ "42501", QRET_ERR_PRIVILEGE, SQLSTATE_PERMANENT,
	  "grant what is missing, or install again with option grant_role" },
	{ "42", QRET_ERR_SCHEMA, SQLSTATE_PERMANENT,
	  "install the schema, or check the options that name schemas and tables" },
	{ "3F000", QRET_ERR_SCHEMA, SQLSTATE_PERMANENT,
	  "install the schema, or check the options that name schemas and tables" },
	{ "0A000", QRET_ERR_SQL, SQLSTATE_PERMANENT, "" },
	{ "26000", QRET_ERR_SQL, SQLSTATE_CYCLE,
	  "a pooler switched the server connection: set option pooler to transaction" },
	{ "42P05", QRET_ERR_SQL, SQLSTATE_CYCLE,
	  "a pooler switched the server connection: set option pooler to transaction" },
	/* one item */
	{ "40001", QRET_ERR_SQL, SQLSTATE_RETRY, "" },
	{ "40P01", QRET_ERR_SQL, SQLSTATE_RETRY, "" },
	{ "40", QRET_ERR_SQL, SQLSTATE_RETRY, "" },
	{ "55P03", QRET_ERR_SQL, SQLSTATE_LOCKED, "" },
	{ "55006", QRET_ERR_SQL, SQLSTATE_LOCKED, "" },
	{ "57014", QRET_ERR_TIMEOUT, SQLSTATE_SHRINK,
	  "raise statement_timeout_ms or lower batch_size" },
	{ "", QRET_ERR_SQL, SQLSTATE_ITEM, "" },
};

const struct sqlstate_rule *sqlstate_rule(const char *sqlstate)
{
	const struct sqlstate_rule *best = NULL;
	size_t best_length = 0;

	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		size_t length = strlen(rules[i].prefix);

		if (strncmp(sqlstate, rules[i].prefix, length) == 0 &&
		    (best == NULL || length > best_length)) {
			best = &rules[i];
			best_length = length;
		}
	}
	return best;
}
