/* SPDX-License-Identifier: MIT */
/* The script's side of the server: which statement came, with which parameters, and what is answered. */
#include "script_pq.h"
#include "unit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qretention.h"
#include "script_memory.h"
#include "statement.h"

#define STATEMENTS_MOST 64

static const struct script_entry *entries;
static size_t entry_count, position;
static script_server server;
static struct options options;       /* as the context has them: the statements follow */
static struct statements statements; /* kept from script to script, as making them takes long */
static bool changed;                 /* by script_option */

static struct {
	char name[48];
	int times;
} sent[STATEMENTS_MOST];

/* The statements that tests name; another one is "other". */
static const struct {
	enum statement id;
	const char *name;
} names[] = {
	{ STATEMENT_EVENT_PRUNE_STEP, "event_prune_step" },
	{ STATEMENT_FACTS, "facts" },
	{ STATEMENT_FLOORS_PINNED, "floors_pinned" },
	{ STATEMENT_FLOORS_REFRESH, "floors_refresh" },
	{ STATEMENT_FLOORS_WALK, "floors_walk" },
	{ STATEMENT_GATE_RELEASE, "gate_release" },
	{ STATEMENT_GATE_TAKE, "gate_take" },
	{ STATEMENT_INSTALL_HAS_STREAMS, "install_has_streams" },
	{ STATEMENT_INSTALL_INVALID_INDEX, "install_invalid_index" },
	{ STATEMENT_LEASE_BARRIER, "lease_barrier" },
	{ STATEMENT_LEASE_CLAIM, "lease_claim" },
	{ STATEMENT_LEASE_FENCE, "lease_fence" },
	{ STATEMENT_LEASE_RELEASE, "lease_release" },
	{ STATEMENT_LEASE_RENEW, "lease_renew" },
	{ STATEMENT_SETTINGS, "settings" },
	{ STATEMENT_STEP_CLEANUP_V1, "step_cleanup_v1" },
	{ STATEMENT_STEP_CLEANUP_V2, "step_cleanup_v2" },
	{ STATEMENT_STEP_MAX_WAIT_V1, "step_max_wait_v1" },
	{ STATEMENT_STEP_MAX_WAIT_V2, "step_max_wait_v2" },
	{ STATEMENT_STEP_RETENTION_V1, "step_retention_v1" },
	{ STATEMENT_STEP_RETENTION_V2, "step_retention_v2" },
	{ STATEMENT_STEP_TXNS_V1, "step_txns_v1" },
	{ STATEMENT_STEP_TXNS_V2, "step_txns_v2" },
	{ STATEMENT_WORKLIST_BY_ID, "worklist_by_id" },
	{ STATEMENT_WORKLIST_DUE, "worklist_due" },
	{ STATEMENT_WORKLIST_SCAN, "worklist_scan" },
};

void script_server_reset(void)
{
	entries = NULL;
	entry_count = position = 0;
	server = NULL;
	memset(sent, 0, sizeof(sent));
	if (statements.texts[0] != NULL && !changed)
		return;
	memory_pause();
	options_free(&options);
	options_init(&options);
	REQUIRE(statements_build(&statements, &options) == QRET_DONE,
	        "the world could not be set up");
	changed = false;
	memory_resume();
}

void script_option(const char *name, const char *value)
{
	char *before[OPTION_COUNT];
	struct error error;
	bool clamped;

	memory_pause();
	memcpy(before, options.text, sizeof(before));
	REQUIRE(options_set(&options, name, value, &clamped, &error) == QRET_DONE,
	        "the world could not be set up");
	/* Numbers travel as parameters: they change no text. */
	if (strcmp(name, "engines") == 0 || memcmp(before, options.text, sizeof(before)) != 0) {
		changed = true;
		REQUIRE(statements_build(&statements, &options) == QRET_DONE,
		        "the world could not be set up");
	}
	memory_resume();
}

void script_expect(const struct script_entry *list, size_t count)
{
	entries = list;
	entry_count = count;
	position = 0;
}

void script_serve(script_server model)
{
	server = model;
}

void script_server_check(void)
{
	REQUIRE(position == entry_count, "script[%zu]: %s was not sent", position,
	        position < entry_count ? entries[position].statement : "");
}

const char *script_statement_name(const char *text)
{
	if (strncmp(text, "BEGIN", 5) == 0)
		return "begin";
	if (strcmp(text, "COMMIT") == 0)
		return "commit";
	if (strncmp(text, "SET ", 4) == 0)
		return "set";
	if (strcmp(text, "SELECT true") == 0)
		return "sign_of_life";
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(text, statements.texts[names[i].id]) == 0)
			return names[i].name;
	}
	for (int i = 0; i < METRICS_TABLES; i++) {
		if (strcmp(text, statements.metrics[i]) == 0)
			return "metrics_purge";
	}
	if (strcmp(text, statements.log_version) == 0 ||
	    strcmp(text, statements.event_version) == 0)
		return "schema_version";
	if (strcmp(text, statements.log_install) == 0 ||
	    strcmp(text, statements.event_install) == 0)
		return "install_object";
	return "other";
}

static void note_sent(const char *name)
{
	int at = 0;

	while (sent[at].times > 0 && strcmp(sent[at].name, name) != 0)
		at++;
	snprintf(sent[at].name, sizeof(sent[at].name), "%s", name);
	sent[at].times++;
}

int script_sent(const char *statement)
{
	for (int at = 0; at < STATEMENTS_MOST; at++) {
		if (strcmp(sent[at].name, statement) == 0)
			return sent[at].times;
	}
	return 0;
}

void script_answer(struct script_call *call, const char **ret_answer)
{
	const struct script_entry *entry;

	note_sent(call->statement);
	if (strcmp(call->statement, "set") == 0 && server == NULL) {
		*ret_answer = "";
		return;
	}
	if (server != NULL) {
		*ret_answer = server(call);
		REQUIRE(*ret_answer != NULL, "the model server has no answer to %s(%s)",
		        call->statement, call->parameters);
		return;
	}
	REQUIRE(position < entry_count, "script[%zu]: over, but %s(%s) came", position,
	        call->statement, call->parameters);
	entry = &entries[position];
	REQUIRE(strcmp(entry->statement, call->statement) == 0,
	        "script[%zu]: expected %s, got %s(%s)", position, entry->statement, call->statement,
	        call->parameters);
	REQUIRE(entry->parameters == NULL || strcmp(entry->parameters, call->parameters) == 0,
	        "script[%zu]: expected %s(%s), got (%s)", position, entry->statement,
	        entry->parameters, call->parameters);
	REQUIRE(entry->connection == 0 || entry->connection == call->connection,
	        "script[%zu]: %s came on connection %d", position, entry->statement,
	        call->connection);
	call->delay_ms = entry->delay_ms;
	call->flags = entry->flags;
	*ret_answer = entry->answer != NULL ? entry->answer : "";
	position++;
}

static uint64_t big_endian(const char *value, int bytes)
{
	uint64_t number = 0;

	for (int i = 0; i < bytes; i++)
		number = number << 8 | (uint8_t)value[i];
	return number;
}

static int decode_array(char *target, size_t capacity, const char *value)
{
	uint64_t count = big_endian(value + 12, 4);
	int length = snprintf(target, capacity, "{");

	for (uint64_t i = 0; i < count && (size_t)length + 16 < capacity; i++)
		length += snprintf(target + length, capacity - (size_t)length, "%s#%" PRIu64,
		                   i > 0 ? "," : "", big_endian(value + 20 + i * 20 + 4 + 8, 8));
	return length + snprintf(target + length, capacity - (size_t)length, "}");
}

static int decode(char *target, size_t capacity, unsigned int type, const char *value, int length)
{
	if (value == NULL)
		return snprintf(target, capacity, "-");
	switch (type) {
	case 16:
		return snprintf(target, capacity, "%c", value[0] ? 't' : 'f');
	case 20:
		return snprintf(target, capacity, "%" PRId64, (int64_t)big_endian(value, 8));
	case 23:
		return snprintf(target, capacity, "%d", (int32_t)big_endian(value, 4));
	case 25:
		return snprintf(target, capacity, "'%.*s", length, value);
	case 1184:
		return snprintf(target, capacity, "@%" PRId64,
		                (int64_t)big_endian(value, 8) + 946684800000000);
	case 2950:
		return snprintf(target, capacity, "#%" PRIu64, big_endian(value + 8, 8));
	case 2951:
		return decode_array(target, capacity, value);
	default:
		return snprintf(target, capacity, "?");
	}
}

void script_decode_parameters(char *target, size_t capacity, int count, const unsigned int *types,
                              const char *const *values, const int *lengths)
{
	size_t length = 0;

	target[0] = '\0';
	for (int i = 0; i < count && length + 8 < capacity; i++) {
		if (i > 0)
			target[length++] = ' ';
		length += (size_t)decode(target + length, capacity - length, types[i], values[i],
		                         lengths[i]);
		length = length < capacity ? length : capacity - 1;
	}
}
