/* SPDX-License-Identifier: MIT */
/*
 * Due partitions by their floors. The server decides what is due; here is remembered where to
 * look next.
 */
#include "floors.h"

#include <stdlib.h>
#include <string.h>

#include "context.h"
#include "smaller.h"
#include "uuid.h"

#define QUEUE_CAP       200 /* partitions of one queue in a page: the others get their turn */
#define LOOKS_BY_HINT   100 /* then one that starts from the beginning */
#define SETTLE_FAILURES 3   /* what fails so often in a row is not the partitions' fault */

static const int32_t size_most[FLOORS_KINDS] = {
	[FLOORS_SETTLE] = 256,
	[FLOORS_PINNED] = 10000,
	[FLOORS_WALK] = 1000,
};

int floors_init(struct floors *floors)
{
	memcpy(floors->sizes, size_most, sizeof(floors->sizes));
	floors->array = malloc(uuid_array_bytes(PAGE_ITEMS));
	return floors->array == NULL ? QRET_ERR_NOMEM : QRET_DONE;
}

void floors_forget_hints(struct floors *floors)
{
	for (int i = 0; i < FLOORS_HINTS; i++)
		blob_clear(&floors->hints[i]);
	floors->looks = 0;
}

void floors_free(struct floors *floors)
{
	floors_forget_hints(floors);
	free(floors->excluded.list);
	free(floors->unsettled.list);
	free(floors->array);
}

void floors_forget(struct floors *floors)
{
	floors_forget_hints(floors);
	floors->has_after = false;
	floors_rounds_forget(floors);
}

static void grow(struct floors *floors, enum floors_kind kind)
{
	floors->sizes[kind] = smaller(2 * (int64_t)floors->sizes[kind], size_most[kind]);
}

void floors_begin(struct floors *floors)
{
	floors->excluded.count = 0;
	floors->unsettled.count = 0;
	floors->settling = floors->failures = 0;
	floors->progress = 1;
	for (int kind = 0; kind < FLOORS_KINDS; kind++)
		grow(floors, kind);
}

bool floors_shrink(struct floors *floors, enum floors_kind kind)
{
	if (floors->asked <= 1)
		return false;
	floors->sizes[kind] = floors->asked / 2;
	return true;
}

/* Out of memory an id is not kept: its partition is met again, and nothing is lost but time. */
static void ids_add(struct ids *ids, const uint8_t *id, uint32_t most)
{
	if (ids->count == ids->capacity) {
		uint32_t capacity = ids->capacity == 0 ? 64 : 2 * ids->capacity;
		uint8_t(*list)[16] = capacity > 2 * most
		                             ? NULL
		                             : realloc(ids->list, capacity * sizeof(*list));

		if (list == NULL)
			return;
		ids->list = list;
		ids->capacity = capacity;
	}
	memcpy(ids->list[ids->count++], id, UUID_BYTES);
}

static void exclude(struct floors *floors, const uint8_t *id)
{
	ids_add(&floors->excluded, id, EXCLUDED_MOST);
}

void floors_unsettle(struct floors *floors, const uint8_t *id)
{
	ids_add(&floors->unsettled, id, (uint32_t)size_most[FLOORS_PINNED]);
}

static void bind_ids(struct floors *floors, const struct ids *ids, uint32_t count,
                     struct parameters *parameters)
{
	uuid_array_begin(floors->array, count);
	for (uint32_t i = 0; i < count; i++)
		uuid_array_set(floors->array, i, ids->list[i]);
	parameter_uuid_array(parameters, floors->array, count);
}

/* ---- The list ------------------------------------------------------------------------------ */

const char *floors_due_bind(struct qret_ctx *ctx, struct parameters *parameters)
{
	struct floors *floors = &ctx->floors;
	uint32_t excluded = floors->excluded.count < EXCLUDED_MOST ? floors->excluded.count
	                                                           : EXCLUDED_MOST;

	if (++floors->looks > LOOKS_BY_HINT)
		floors_forget_hints(floors);
	parameter_int4(parameters, QUEUE_CAP);
	parameter_uuid(parameters, floors->has_after ? floors->after : NULL);
	bind_ids(floors, &floors->excluded, excluded, parameters);
	for (int i = 0; i < FLOORS_HINTS; i++)
		parameter_blob(parameters, &floors->hints[i]);
	return context_statement(ctx, STATEMENT_WORKLIST_DUE);
}

void floors_due_read(struct qret_ctx *ctx, const struct pg_result *result)
{
	struct floors *floors = &ctx->floors;
	int last = result_rows(result) - 1;

	if (last >= 0 && !result_is_null(result, last, 9)) {
		for (int i = 0; i < FLOORS_HINTS; i++)
			blob_set(&floors->hints[i], result, last, 8 + i);
	}
	if (last > 0)
		floors->has_after = result_uuid(result, last - 1, 7, floors->after);
	for (int row = 0; row < last && (uint32_t)row < ctx->pager.count; row++) {
		struct work *work = &ctx->pager.works[row];
		uint8_t filed_under[UUID_BYTES];

		work->misfiled = result_uuid(result, row, 7, filed_under) &&
		                 memcmp(filed_under, work->item.queue_id, UUID_BYTES) != 0;
	}
}

bool floors_page_over(struct qret_ctx *ctx)
{
	struct floors *floors = &ctx->floors;
	uint32_t before = floors->progress;

	floors->progress = 0;
	for (uint32_t i = 0; i < ctx->pager.count; i++) {
		const struct work *work = &ctx->pager.works[i];
		const uint8_t *id = work->item.partition_id;
		bool idle = !work->deleted && pager_stepped(&ctx->pager, id);

		/*
		 * What failed, or had nothing for its steps, is listed once a cycle, whatever the
		 * reason: a host's trigger, a function that lies.
		 */
		if (work->failed || idle)
			exclude(floors, id);
		if (!work->failed && (!work->deleted || work->misfiled))
			floors_unsettle(floors, id);
		floors->progress += work->deleted || work->failed || idle;
	}
	return (before > 0 || floors->progress > 0) && floors->excluded.count < EXCLUDED_MOST;
}

void floors_page_listed(struct qret_ctx *ctx)
{
	bool writable = !ctx->facts.is[FACT_READ_ONLY];

	for (uint32_t i = 0; i < ctx->pager.count; i++) {
		const uint8_t *id = ctx->pager.works[i].item.partition_id;

		if (writable && !pager_stepped(&ctx->pager, id))
			floors_unsettle(&ctx->floors, id);
		else
			exclude(&ctx->floors, id);
	}
}

/* ---- Settling -------------------------------------------------------------------------------- */

const char *floors_settle_bind(struct qret_ctx *ctx, struct parameters *parameters)
{
	struct floors *floors = &ctx->floors;

	floors->asked = smaller(floors->unsettled.count, floors->sizes[FLOORS_SETTLE]);
	floors->settling = (uint32_t)floors->asked;
	bind_ids(floors, &floors->unsettled, floors->settling, parameters);
	parameter_timestamp(parameters, ctx->cycle.clock_us);
	return context_statement(ctx, STATEMENT_FLOORS_REFRESH);
}

static void drop_settling(struct floors *floors)
{
	floors->unsettled.count -= floors->settling;
	memmove(floors->unsettled.list, floors->unsettled.list + floors->settling,
	        floors->unsettled.count * UUID_BYTES);
	floors->settling = 0;
}

static void log_partition(struct qret_ctx *ctx, enum log_event event, const uint8_t *id,
                          const char *group)
{
	struct line line;

	if (!log_wants(&ctx->log, event))
		return;
	log_begin(&line, event);
	line_uuid(&line, "partition", id);
	if (group != NULL)
		line_text(&line, "consumer_group", group);
	log_end(&ctx->log, event, &line);
}

void floors_refreshed_read(struct qret_ctx *ctx, const struct pg_result *result, int row)
{
	struct floors *floors = &ctx->floors;
	uint8_t id[UUID_BYTES];
	char state[16], group[256];

	if (!result_uuid(result, row, 0, id))
		return;
	result_text(result, row, 2, state, sizeof(state));
	result_text(result, row, 3, group, sizeof(group));
	if (strcmp(state, "pinned") == 0) {
		floors->pinned_count++;
		log_partition(ctx, LOG_PINNED, id, group);
	} else if (strcmp(state, "released") == 0 && floors->pinned_count > 0) {
		floors->pinned_count--;
	}
	if (result_bool(result, row, 5)) {
		ctx->metrics.met.future_heads++;
		log_partition(ctx, LOG_FUTURE_HEAD, id, NULL);
	}
	if (ctx->cycle.state != STATE_SETTLE)
		return;
	/* Held by somebody: not again in this cycle. */
	if (strcmp(state, "busy") == 0)
		exclude(floors, id);
	else if (state[0] != '\0')
		floors->progress++;
}

void floors_settle_read(struct qret_ctx *ctx, const struct pg_result *result)
{
	for (int row = 0; row < result_rows(result); row++)
		floors_refreshed_read(ctx, result, row);
	ctx->floors.failures = 0;
	grow(&ctx->floors, FLOORS_SETTLE);
	drop_settling(&ctx->floors);
}

void floors_settle_failed(struct floors *floors)
{
	if (++floors->failures >= SETTLE_FAILURES)
		floors->settling = floors->unsettled.count;
	for (uint32_t i = 0; i < floors->settling; i++)
		exclude(floors, floors->unsettled.list[i]);
	drop_settling(floors);
}
