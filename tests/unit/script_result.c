/* SPDX-License-Identifier: MIT */
/* Results of the scripted libpq: made from the answers of a script, and strict about their lives. */
#include <stdio.h>

#include "script_libpq.h"

static struct pg_result *results; /* all that were ever made */

void script_free_results(void)
{
	while (results != NULL) {
		struct pg_result *older = results->older;

		__real_free(results->cells);
		__real_free(results);
		results = older;
	}
}

void script_check_results(void)
{
	for (const struct pg_result *result = results; result != NULL; result = result->older)
		REQUIRE(result->cleared, "a result (%s) was not cleared", result->message);
}

struct pg_result *script_result(ExecStatusType status)
{
	struct pg_result *result = __real_calloc(1, sizeof(*result));

	result->status = status;
	result->older = results;
	results = result;
	return result;
}

static void put(struct cell *cell, Oid type, uint64_t value, int bytes)
{
	cell->type = type;
	cell->length = bytes;
	for (int i = bytes - 1; i >= 0; i--, value >>= 8)
		cell->value[i] = (char)value;
}

static void encode(struct cell *cell, const char *word, size_t length)
{
	if (word[0] == '-' && length == 1)
		cell->length = -1;
	else if (word[0] == 't' || word[0] == 'f')
		put(cell, 16, word[0] == 't', 1);
	else if (word[0] == '@')
		put(cell, 1184, (uint64_t)(strtoll(word + 1, NULL, 10) - 946684800000000), 8);
	else if (word[0] == '#')
		put(cell, 2950, strtoull(word + 1, NULL, 10), 16);
	else if (word[0] == '\'')
		cell->length = snprintf(cell->value, sizeof(cell->value), "%.*s", (int)length - 1,
		                        word + 1);
	else
		put(cell, 20, (uint64_t)strtoll(word, NULL, 10), 8);
}

struct pg_result *script_result_of_rows(const char *answer)
{
	struct pg_result *result = script_result(PGRES_TUPLES_OK);
	int rows = 1, width = 1, at = 0;

	for (const char *c = answer; *c != '\0'; c++)
		rows += *c == '/';
	for (const char *c = answer; *c != '\0' && *c != '/'; c++)
		width += *c == ' ';
	result->width = width < CELLS_MOST ? width : CELLS_MOST;
	result->cells = __real_calloc((size_t)(rows * result->width), sizeof(struct cell));
	while (*answer != '\0') {
		size_t length = strcspn(answer, " /");

		REQUIRE(at < result->width, "a row of the answer is longer than the first");
		if (length > 0) {
			encode(&result->cells[result->rows * result->width + at++], answer, length);
			result->columns = at > result->columns ? at : result->columns;
		}
		answer += length;
		if (*answer == '/' || *answer == '\0') {
			result->rows += at > 0;
			at = 0;
		}
		answer += *answer != '\0';
	}
	if (result->columns == 0)
		result->columns = CELLS_MOST;
	return result;
}

struct pg_result *script_result_of_error(const char *severity, const char *sqlstate,
                                         const char *message)
{
	struct pg_result *result = script_result(PGRES_FATAL_ERROR);

	snprintf(result->severity, sizeof(result->severity), "%s", severity);
	snprintf(result->sqlstate, sizeof(result->sqlstate), "%.5s", sqlstate);
	snprintf(result->message, sizeof(result->message), "%s", message);
	return result;
}

static const struct pg_result *alive(const PGresult *result)
{
	REQUIRE(result != NULL && !result->cleared, "a result was used after PQclear");
	return result;
}

void PQclear(PGresult *result)
{
	if (result == NULL)
		return;
	REQUIRE(!result->cleared, "a result was cleared twice");
	result->cleared = true;
}

ExecStatusType PQresultStatus(const PGresult *result)
{
	return result == NULL ? PGRES_FATAL_ERROR : alive(result)->status;
}

char *PQresultErrorMessage(const PGresult *result)
{
	return result == NULL ? (char *)(uintptr_t) "" : (char *)(uintptr_t)alive(result)->message;
}

char *PQresultErrorField(const PGresult *result, int field)
{
	const struct pg_result *own = alive(result);

	switch (field) {
	case PG_DIAG_SQLSTATE:
		return own->sqlstate[0] == '\0' ? NULL : (char *)(uintptr_t)own->sqlstate;
	case PG_DIAG_MESSAGE_PRIMARY:
		return own->sqlstate[0] == '\0' ? NULL : (char *)(uintptr_t)own->message;
	case PG_DIAG_SEVERITY_NONLOCALIZED:
		return (char *)(uintptr_t)own->severity;
	default:
		return NULL;
	}
}

int PQntuples(const PGresult *result)
{
	return alive(result)->rows;
}

int PQnfields(const PGresult *result)
{
	return alive(result)->columns;
}

static const struct cell *cell_of(const PGresult *result, int row, int column)
{
	REQUIRE(row >= 0 && row < alive(result)->rows && column >= 0 && column < result->columns,
	        "row %d, column %d of a result of %d, %d", row, column, result->rows,
	        result->columns);
	return &result->cells[row * result->width + column];
}

Oid PQftype(const PGresult *result, int column)
{
	return cell_of(result, 0, column)->type;
}

int PQgetisnull(const PGresult *result, int row, int column)
{
	return cell_of(result, row, column)->length < 0;
}

int PQgetlength(const PGresult *result, int row, int column)
{
	int length = cell_of(result, row, column)->length;

	return length < 0 ? 0 : length;
}

char *PQgetvalue(const PGresult *result, int row, int column)
{
	return (char *)(uintptr_t)cell_of(result, row, column)->value;
}
