/* SPDX-License-Identifier: MIT */
/* Reads work lists. Policy is in the statement; here its rows become work items. */
#include "worklist.h"

#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "states.h"
#include "struct_size.h"
#include "uuid.h"

/* A page that is older than this is read again before it is acted on: policies may have changed. */
#define PAGE_FRESH_US (60 * US_PER_SECOND)

int pager_init(struct pager *pager)
{
	pager->works = calloc(PAGE_ITEMS, sizeof(*pager->works));
	pager->ids = malloc(uuid_array_bytes(PAGE_ITEMS));
	return pager->works == NULL || pager->ids == NULL ? QRET_ERR_NOMEM : QRET_DONE;
}

void pager_free(struct pager *pager)
{
	free(pager->works);
	free(pager->ids);
}

void pager_begin(struct pager *pager)
{
	pager->count = 0;
	pager->read_us = 0;
	pager->last = pager->has_after = false;
}

const char *pager_bind(struct qret_ctx *ctx, struct parameters *parameters)
{
	struct pager *pager = &ctx->pager;

	parameter_timestamp(parameters, ctx->cycle.clock_us);
	if (states_by_floors(ctx))
		return floors_due_bind(ctx, parameters);
	parameter_uuid(parameters, pager->has_after ? pager->after : NULL);
	parameter_int4(parameters, PAGE_ITEMS);
	return context_statement(ctx, STATEMENT_WORKLIST_SCAN);
}

/* Columns 3 to 6 of every work list. */
static void read_cutoffs(const struct pg_result *result, int row, struct qret_work_item *item)
{
	item->all_cutoff_us = result_timestamp(result, row, 3);
	item->completed_cutoff_us = result_timestamp(result, row, 4);
	item->txns_cutoff_us = result_timestamp(result, row, 5);
	item->max_wait_cutoff_us = result_timestamp(result, row, 6);
}

static bool has_cutoff(const struct qret_work_item *item)
{
	return item->all_cutoff_us != QRET_CUTOFF_OFF ||
	       item->completed_cutoff_us != QRET_CUTOFF_OFF ||
	       item->txns_cutoff_us != QRET_CUTOFF_OFF ||
	       item->max_wait_cutoff_us != QRET_CUTOFF_OFF;
}

static int compare_ids(const void *key, const void *element)
{
	return memcmp(key, ((const struct work *)element)->item.partition_id, UUID_BYTES);
}

bool pager_stepped(const struct pager *pager, const uint8_t *id)
{
	const struct work *work = bsearch(id, pager->works, pager->count, sizeof(*work),
	                                  compare_ids);

	return work != NULL && has_cutoff(&work->item);
}

/* Ascending id, the one order in which everybody takes partitions. */
static int compare_works(const void *a, const void *b)
{
	return memcmp(((const struct work *)a)->item.partition_id,
	              ((const struct work *)b)->item.partition_id, UUID_BYTES);
}

void pager_read(struct qret_ctx *ctx, const struct pg_result *result)
{
	struct pager *pager = &ctx->pager;
	int rows = result_rows(result);

	pager->count = 0;
	if (ctx->cycle.clock_us == QRET_CUTOFF_OFF && rows > 0)
		ctx->cycle.clock_us = result_timestamp(result, 0, 0);
	for (int row = 0; row < rows && pager->count < PAGE_ITEMS; row++) {
		struct work *work = &pager->works[pager->count];

		memset(work, 0, sizeof(*work));
		work->item.size = sizeof(work->item);
		if (!result_uuid(result, row, 1, work->item.partition_id))
			continue;
		result_uuid(result, row, 2, work->item.queue_id);
		read_cutoffs(result, row, &work->item);
		pager->count++;
	}
	pager->read_us = qret_now_us();
	if (states_by_floors(ctx)) {
		floors_due_read(ctx, result);
		qsort(pager->works, pager->count, sizeof(*pager->works), compare_works);
		pager->last = pager->count == 0;
		return;
	}
	pager->last = pager->count < PAGE_ITEMS;
	if (pager->count > 0) {
		memcpy(pager->after, pager->works[pager->count - 1].item.partition_id, UUID_BYTES);
		pager->has_after = true;
	}
}

bool pager_stale(const struct pager *pager)
{
	return qret_now_us() - pager->read_us > PAGE_FRESH_US;
}

const char *pager_refresh_bind(struct qret_ctx *ctx, struct parameters *parameters)
{
	struct pager *pager = &ctx->pager;

	uuid_array_begin(pager->ids, pager->count);
	for (uint32_t i = 0; i < pager->count; i++)
		uuid_array_set(pager->ids, i, pager->works[i].item.partition_id);
	parameter_timestamp(parameters, ctx->cycle.clock_us);
	parameter_uuid_array(parameters, pager->ids, pager->count);
	return context_statement(ctx, STATEMENT_WORKLIST_BY_ID);
}

void pager_refresh_read(struct qret_ctx *ctx, const struct pg_result *result)
{
	struct pager *pager = &ctx->pager;

	/*
	 * A partition that is not in the answer is gone: with every rule off nobody will step
	 * it.
	 */
	for (uint32_t i = 0; i < pager->count; i++) {
		struct qret_work_item *item = &pager->works[i].item;

		item->all_cutoff_us = item->completed_cutoff_us = QRET_CUTOFF_OFF;
		item->txns_cutoff_us = item->max_wait_cutoff_us = QRET_CUTOFF_OFF;
	}
	for (int row = 0; row < result_rows(result); row++) {
		uint8_t id[UUID_BYTES];
		struct work *work;

		if (!result_uuid(result, row, 1, id))
			continue;
		work = bsearch(id, pager->works, pager->count, sizeof(*work), compare_ids);
		if (work != NULL)
			read_cutoffs(result, row, &work->item);
	}
	pager->read_us = qret_now_us();
}

/* ---- The host's own view ------------------------------------------------------------------ */

struct qret_worklist {
	int64_t clock_us;
	uint64_t count, capacity;
	struct qret_work_item *items;
};

struct qret_worklist *worklist_new(void)
{
	return calloc(1, sizeof(struct qret_worklist));
}

bool worklist_full(const struct qret_worklist *list, int64_t limit)
{
	return limit > 0 && list->count >= (uint64_t)limit;
}

int worklist_append(struct qret_worklist *list, const struct pager *pager, int64_t limit,
                    bool unsettled)
{
	if (list->count + pager->count > list->capacity) {
		uint64_t capacity = 2 * list->capacity + PAGE_ITEMS;
		struct qret_work_item *items = realloc(list->items, capacity * sizeof(*items));

		if (items == NULL)
			return QRET_ERR_NOMEM;
		list->items = items;
		list->capacity = capacity;
	}
	for (uint32_t i = 0; i < pager->count && !worklist_full(list, limit); i++) {
		if (!unsettled || has_cutoff(&pager->works[i].item))
			list->items[list->count++] = pager->works[i].item;
	}
	return QRET_DONE;
}

void worklist_set_clock(struct qret_worklist *list, int64_t clock_us)
{
	list->clock_us = clock_us;
}

uint64_t qret_worklist_count(const struct qret_worklist *list)
{
	return list == NULL ? 0 : list->count;
}

int64_t qret_worklist_clock_us(const struct qret_worklist *list)
{
	return list == NULL ? 0 : list->clock_us;
}

int qret_worklist_get(const struct qret_worklist *list, uint64_t index,
                      struct qret_work_item *ret_item)
{
	if (list == NULL || index >= list->count)
		return QRET_ERR_ARGUMENT;
	return struct_write(ret_item, &list->items[index], sizeof(list->items[index]),
	                    sizeof(list->items[index]));
}

void qret_worklist_free(struct qret_worklist *list)
{
	if (list == NULL)
		return;
	free(list->items);
	free(list);
}
