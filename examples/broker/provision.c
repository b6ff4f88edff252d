/* SPDX-License-Identifier: MIT */
/* Before the serving begins: our SQL functions, the queues with their policies, the partitions. */
#include "broker.h"

#include <stdlib.h>
#include <string.h>

#define INSTALL_KEY "7370019" /* brokers that start together install one after the other */

extern const char *const broker_sql[]; /* made from sql/ by embed.sh */

static int complain(const char *doing, PGconn *connection, const PGresult *result)
{
	const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);

	fprintf(stderr, "broker: %s: %s\n", doing, message ? message : PQerrorMessage(connection));
	return -1;
}

/* Writes `with` for each `token` of `text`, on the heap. */
static char *replace(const char *text, const char *token, const char *with)
{
	size_t count = 0;
	size_t token_length = strlen(token), with_length = strlen(with);
	char *result, *end;

	for (const char *at = strstr(text, token); at; at = strstr(at + token_length, token))
		count++;
	result = malloc(strlen(text) + count * with_length + 1);
	if (result == NULL)
		return NULL;
	end = result;
	for (const char *at = strstr(text, token); at; at = strstr(text, token)) {
		memcpy(end, text, (size_t)(at - text));
		end += at - text;
		memcpy(end, with, with_length);
		end += with_length;
		text = at + token_length;
	}
	memcpy(end, text, strlen(text) + 1);
	return result;
}

/* The text with both schemas' names in it. */
static char *with_schemas(PGconn *connection, const struct settings *settings, const char *text)
{
	char *log = PQescapeIdentifier(connection, settings->log_schema,
	                               strlen(settings->log_schema));
	char *broker = PQescapeIdentifier(connection, settings->broker_schema,
	                                  strlen(settings->broker_schema));
	char *half = log ? replace(text, "@log@", log) : NULL;
	char *whole = half && broker ? replace(half, "@broker@", broker) : NULL;

	free(half);
	PQfreemem(log);
	PQfreemem(broker);
	return whole;
}

static const char *const call_texts[CALL_COUNT] = {
	[CALL_PUSH] = "SELECT base_offset FROM @broker@.push($1, $2, $3, $4)",
	[CALL_PUSH_MANY] = "SELECT NULLIF(@broker@.push_many($1, $2, $3, $4), 0)",
	[CALL_PROVISION] = "SELECT @broker@.provision($1, $2)",
	[CALL_POP] = "SELECT outcome, first_offset FROM @broker@.pop($1, $2, $3, $4)",
	[CALL_ACK] = "SELECT @broker@.ack($1, $2, $3)",
	[CALL_DEAD_LETTER] =
		"SELECT @broker@.dead_letter($1, $2, $3, $4, 'refused by the handler')",
	[CALL_SEEK] = "SELECT @broker@.seek($1, $2, 0)",
};

static int prepare_calls(PGconn *connection, const struct settings *settings,
                         struct catalogue *catalogue)
{
	for (int i = 0; i < CALL_COUNT; i++) {
		catalogue->calls[i] = with_schemas(connection, settings, call_texts[i]);
		if (catalogue->calls[i] == NULL)
			return -1;
	}
	return 0;
}

static int run(PGconn *connection, const struct settings *settings, const char *text)
{
	char *sql = with_schemas(connection, settings, text);
	PGresult *result = sql ? PQexec(connection, sql) : NULL;
	ExecStatusType status = PQresultStatus(result);
	int rc = 0;

	if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
		rc = complain("setting up", connection, result);
	PQclear(result);
	free(sql);
	return rc;
}

static int install_functions(PGconn *connection, const struct settings *settings)
{
	int rc = run(connection, settings, "BEGIN");

	if (rc == 0)
		rc = run(connection, settings, "SELECT pg_advisory_xact_lock(" INSTALL_KEY ")");
	if (rc == 0)
		rc = run(connection, settings, "CREATE SCHEMA IF NOT EXISTS @broker@");
	for (size_t i = 0; rc == 0 && broker_sql[i]; i++)
		rc = run(connection, settings, broker_sql[i]);
	return rc == 0 ? run(connection, settings, "COMMIT") : rc;
}

/* Runs a call with text values. Writes the first column of the first row if asked to. */
static int call(PGconn *connection, const struct settings *settings, const char *text,
                const char *const *values, int value_count, char *ret_text, size_t size)
{
	char *sql = with_schemas(connection, settings, text);
	PGresult *result = sql ? PQexecParams(connection, sql, value_count, NULL, values, NULL,
	                                      NULL, 0)
	                       : NULL;
	int rc = 0;

	if (PQresultStatus(result) != PGRES_TUPLES_OK)
		rc = complain("setting up the queues", connection, result);
	else if (ret_text)
		snprintf(ret_text, size, "%s", PQgetvalue(result, 0, 0));
	PQclear(result);
	free(sql);
	return rc;
}

static int configure(PGconn *connection, const struct settings *settings, const char *queue,
                     const struct queue_spec *spec)
{
	const int numbers[] = { spec->retention, spec->completed, spec->max_wait, spec->dedup };
	char texts[4][16];
	const char *values[5] = { queue };

	for (int i = 0; i < 4; i++) {
		snprintf(texts[i], sizeof(texts[i]), "%d", numbers[i]);
		values[i + 1] = texts[i];
	}
	return call(connection, settings, "SELECT @broker@.configure($1, $2, $3, $4, $5)", values,
	            5, NULL, 0);
}

static struct partition *add_partition(struct catalogue *catalogue)
{
	struct partition *grown = realloc(catalogue->partitions,
	                                  (catalogue->count + 1) * sizeof(*grown));

	if (grown == NULL)
		return NULL;
	catalogue->partitions = grown;
	grown[catalogue->count] = (struct partition){ 0 };
	return &grown[catalogue->count++];
}

static int add_queue(PGconn *connection, const struct settings *settings,
                     struct catalogue *catalogue, const struct queue_spec *spec, const char *queue)
{
	int rc = configure(connection, settings, queue, spec);

	for (int i = 0; rc == 0 && i < spec->partitions; i++) {
		struct partition *partition = add_partition(catalogue);
		const char *values[2];

		if (partition == NULL)
			return -1;
		snprintf(partition->queue, sizeof(partition->queue), "%s", queue);
		if (spec->partitions == 1)
			snprintf(partition->name, sizeof(partition->name), "Default");
		else
			snprintf(partition->name, sizeof(partition->name), "%d", i + 1);
		partition->spec = spec;
		values[0] = partition->queue;
		values[1] = partition->name;
		rc = call(connection, settings, call_texts[CALL_PROVISION], values, 2,
		          partition->id, sizeof(partition->id));
	}
	return rc;
}

static int add_spec(PGconn *connection, const struct settings *settings,
                    struct catalogue *catalogue, const struct queue_spec *spec)
{
	char queue[NAME_SIZE + 16];
	int rc = 0;

	if (spec->copies == 0)
		return add_queue(connection, settings, catalogue, spec, spec->name);
	for (int i = 1; rc == 0 && i <= spec->copies; i++) {
		snprintf(queue, sizeof(queue), "%s-%d", spec->name, i);
		rc = add_queue(connection, settings, catalogue, spec, queue);
	}
	return rc;
}

static int read_specs(const struct settings *settings, struct catalogue *catalogue)
{
	char error[ARGUMENT_ERROR_SIZE];

	catalogue->specs = calloc(settings->queues.count + 1, sizeof(*catalogue->specs));
	if (catalogue->specs == NULL)
		return -1;
	for (size_t i = 0; i < settings->queues.count; i++) {
		if (queue_spec_parse(settings->queues.items[i], &catalogue->specs[i], error) < 0) {
			fprintf(stderr, "broker: %s\n", error);
			return -1;
		}
		catalogue->spec_count++;
	}
	return 0;
}

static int fill_catalogue(PGconn *connection, const struct settings *settings,
                          struct catalogue *catalogue)
{
	int rc = install_functions(connection, settings);

	if (rc == 0)
		rc = prepare_calls(connection, settings, catalogue);
	for (size_t i = 0; rc == 0 && i < catalogue->spec_count; i++)
		rc = add_spec(connection, settings, catalogue, &catalogue->specs[i]);
	for (size_t i = 0; rc == 0 && i < settings->partitions.count; i++) {
		struct partition *partition = add_partition(catalogue);

		if (partition == NULL)
			return -1;
		snprintf(partition->id, sizeof(partition->id), "%s", settings->partitions.items[i]);
	}
	return rc;
}

/* libpq's complaint about a string that it cannot parse repeats it, password and all. */
static PGconn *connect_blocking(const char *dsn)
{
	PQconninfoOption *parsed = PQconninfoParse(dsn ? dsn : "", NULL);
	PGconn *connection = NULL;

	if (parsed == NULL) {
		fprintf(stderr, "broker: the connection string cannot be parsed\n");
		return NULL;
	}
	PQconninfoFree(parsed);
	connection = PQconnectdb(dsn ? dsn : "");
	if (PQstatus(connection) == CONNECTION_OK)
		return connection;
	fprintf(stderr, "broker: %s", PQerrorMessage(connection));
	PQfinish(connection);
	return NULL;
}

int catalogue_prepare(const struct settings *settings, struct catalogue *ret_catalogue)
{
	PGconn *connection;
	int rc = read_specs(settings, ret_catalogue);

	if (rc < 0)
		return rc;
	connection = connect_blocking(settings->dsn);
	if (connection == NULL)
		return -1;
	rc = run(connection, settings, "SET client_min_messages = warning");
	if (rc == 0)
		rc = fill_catalogue(connection, settings, ret_catalogue);
	PQfinish(connection);
	return rc;
}

void catalogue_free(struct catalogue *catalogue)
{
	for (int i = 0; i < CALL_COUNT; i++)
		free(catalogue->calls[i]);
	free(catalogue->partitions);
	free(catalogue->specs);
}
