/* SPDX-License-Identifier: MIT */
/* Any result a server could send, read as the answer to every statement: nothing is read that is not there. */
#include <libpq-fe.h>

#include "context.h"
#include "fuzz.h"
#include "step.h"
#include "value.h"

#define COLUMNS_MOST 12

/* Each byte: a cell of that many bytes taken from the input, 0xff a NULL. */
static PGresult *result_of(const uint8_t *data, size_t size)
{
	static char name[] = "c";
	PGresAttDesc attributes[COLUMNS_MOST];
	PGresult *result = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);
	int columns = size == 0 ? 1 : data[0] % COLUMNS_MOST + 1;
	size_t at = 1;

	memset(attributes, 0, sizeof(attributes));
	for (int i = 0; i < columns; i++) {
		attributes[i].name = name;
		attributes[i].format = 1;
	}
	PQsetResultAttrs(result, columns, attributes);
	for (int cell = 0; at < size && cell < 64; cell++) {
		int length = data[at] == 0xff ? -1 : data[at] % 20;

		at++;
		if (length > 0 && (size_t)length > size - at)
			length = (int)(size - at);
		PQsetvalue(result, cell / columns, cell % columns,
		           length < 0 ? NULL : (char *)(uintptr_t)(data + at), length);
		at += length > 0 ? (size_t)length : 0;
	}
	return result;
}

static void read_values(const PGresult *result)
{
	for (int row = -1; row <= result_rows(result); row++) {
		for (int column = 0; column <= COLUMNS_MOST; column++) {
			uint8_t id[16];
			char text[8];

			result_integer(result, row, column, 7);
			result_bool(result, row, column);
			result_timestamp(result, row, column);
			result_uuid(result, row, column, id);
			result_text(result, row, column, text, sizeof(text));
			FUZZ_REQUIRE(strlen(text) < sizeof(text));
		}
	}
}

static void read_outcomes(const PGresult *result)
{
	void (*const readers[])(const struct pg_result *, int32_t,
	                        struct outcome *) = { step_read_partition, step_read_cleanup,
		                                      step_read_metrics_purge,
		                                      step_read_event_prune };

	for (size_t i = 0; i < sizeof(readers) / sizeof(readers[0]); i++) {
		struct outcome outcome = { 0 };

		readers[i](result, 100, &outcome);
		FUZZ_REQUIRE(memchr(outcome.cursor, '\0', sizeof(outcome.cursor)) != NULL);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct qret_ctx *ctx;
	PGresult *result = result_of(data, size);
	struct facts facts;

	if (ctx == NULL)
		FUZZ_REQUIRE(qret_ctx_new(&ctx) == QRET_DONE);
	read_values(result);
	read_outcomes(result);
	facts_read(&facts, result);
	ctx->cycle.clock_us = QRET_CUTOFF_OFF;
	pager_begin(&ctx->pager);
	pager_read(ctx, result);
	FUZZ_REQUIRE(ctx->pager.count <= PAGE_ITEMS);
	pager_refresh_read(ctx, result);
	leader_take_read(ctx, result);
	leader_release_read(ctx, result);
	PQclear(result);
	return 0;
}
