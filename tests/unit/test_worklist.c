/* SPDX-License-Identifier: MIT */
/* Lists and pages, filled from results that libpq itself makes. */
#include "unit.h"

#include <libpq-fe.h>

#include "context.h"
#include "worklist.h"

static struct qret_ctx *ctx;
static uint8_t clock_bytes[8];

/* An empty page of the seven columns that every work list has. */
static PGresult *page_new(void)
{
	static char name[] = "c";
	PGresAttDesc attributes[7];
	PGresult *result = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);

	memset(attributes, 0, sizeof(attributes));
	for (size_t i = 0; i < COUNT_OF(attributes); i++) {
		attributes[i].name = name;
		attributes[i].format = 1;
	}
	PQsetResultAttrs(result, COUNT_OF(attributes), attributes);
	return result;
}

/* A row: clock 1, partition and queue with this number, the cutoffs NULL but the first. */
static void page_add(PGresult *page, uint32_t number)
{
	uint8_t id[16] = { 0 };
	int row = PQntuples(page);

	for (int i = 0; i < 4; i++)
		id[i] = (uint8_t)(number >> (24 - 8 * i));
	clock_bytes[7] = 1;
	PQsetvalue(page, row, 0, (char *)clock_bytes, 8);
	PQsetvalue(page, row, 1, number == UINT32_MAX ? NULL : (char *)id,
	           number == UINT32_MAX ? -1 : 16);
	PQsetvalue(page, row, 2, (char *)id, 16);
	PQsetvalue(page, row, 3, (char *)clock_bytes, 8);
	for (int column = 4; column < 7; column++)
		PQsetvalue(page, row, column, NULL, -1);
}

static void begin(void)
{
	ck_assert_int_eq(qret_ctx_new(&ctx), QRET_DONE);
	ctx->cycle.clock_us = QRET_CUTOFF_OFF;
	pager_begin(&ctx->pager);
}

START_TEST(pager_reads_items)
{
	PGresult *page = page_new();

	begin();
	page_add(page, 5);
	page_add(page, 6);
	pager_read(ctx, page);
	ck_assert_uint_eq(ctx->pager.count, 2);
	ck_assert(ctx->pager.last);
	ck_assert_int_eq(ctx->cycle.clock_us, 946684800000001LL);
	ck_assert_int_eq(ctx->pager.works[1].item.partition_id[3], 6);
	ck_assert_int_eq(ctx->pager.works[1].item.queue_id[3], 6);
	ck_assert_int_eq(ctx->pager.works[0].item.all_cutoff_us, 946684800000001LL);
	ck_assert_int_eq(ctx->pager.works[0].item.completed_cutoff_us, QRET_CUTOFF_OFF);
	ck_assert_int_eq(ctx->pager.works[0].item.max_wait_cutoff_us, QRET_CUTOFF_OFF);
	ck_assert_uint_eq(ctx->pager.works[0].item.size, sizeof(struct qret_work_item));
	PQclear(page);
	qret_ctx_free(ctx);
}
END_TEST

/* No partition at all: one row that tells the clock. */
START_TEST(pager_reads_clock_alone)
{
	PGresult *page = page_new();

	begin();
	page_add(page, UINT32_MAX);
	pager_read(ctx, page);
	ck_assert_uint_eq(ctx->pager.count, 0);
	ck_assert(ctx->pager.last);
	ck_assert_int_eq(ctx->cycle.clock_us, 946684800000001LL);
	PQclear(page);
	qret_ctx_free(ctx);
}
END_TEST

/* L14: one clock for all pages. */
START_TEST(pager_keeps_first_clock)
{
	PGresult *page = page_new();

	begin();
	ctx->cycle.clock_us = 42;
	page_add(page, 1);
	pager_read(ctx, page);
	ck_assert_int_eq(ctx->cycle.clock_us, 42);
	PQclear(page);
	qret_ctx_free(ctx);
}
END_TEST

START_TEST(pager_full_page_is_followed)
{
	PGresult *page = page_new();

	begin();
	for (uint32_t i = 0; i < PAGE_ITEMS; i++)
		page_add(page, i + 1);
	pager_read(ctx, page);
	ck_assert_uint_eq(ctx->pager.count, PAGE_ITEMS);
	ck_assert(!ctx->pager.last);
	ck_assert(ctx->pager.has_after);
	ck_assert_int_eq(ctx->pager.after[2] << 8 | ctx->pager.after[3], PAGE_ITEMS);
	/* More rows than were asked for: a page holds no more. */
	page_add(page, 99999);
	pager_read(ctx, page);
	ck_assert_uint_eq(ctx->pager.count, PAGE_ITEMS);
	PQclear(page);
	qret_ctx_free(ctx);
}
END_TEST

/* B66: what is gone by the time the page is read again is not stepped; what is left has its policies of now. */
START_TEST(pager_refresh_switches_missing_off)
{
	PGresult *page = page_new(), *again = page_new();

	begin();
	page_add(page, 1);
	page_add(page, 2);
	page_add(page, 3);
	pager_read(ctx, page);
	ctx->pager.works[2].item.all_cutoff_us = 7;
	page_add(again, 3);
	page_add(again, 9);
	pager_refresh_read(ctx, again);
	ck_assert_int_eq(ctx->pager.works[0].item.all_cutoff_us, QRET_CUTOFF_OFF);
	ck_assert_int_eq(ctx->pager.works[0].item.txns_cutoff_us, QRET_CUTOFF_OFF);
	ck_assert_int_eq(ctx->pager.works[1].item.all_cutoff_us, QRET_CUTOFF_OFF);
	ck_assert_int_eq(ctx->pager.works[2].item.all_cutoff_us, 946684800000001LL);
	ck_assert_uint_eq(ctx->pager.count, 3);
	PQclear(page);
	PQclear(again);
	qret_ctx_free(ctx);
}
END_TEST

START_TEST(pager_grows_stale)
{
	begin();
	ctx->pager.read_us = qret_now_us();
	ck_assert(!pager_stale(&ctx->pager));
	ctx->pager.read_us -= 61000000;
	ck_assert(pager_stale(&ctx->pager));
	qret_ctx_free(ctx);
}
END_TEST

START_TEST(worklist_outlives_context)
{
	struct qret_worklist *list = worklist_new();
	struct qret_work_item item = { .size = sizeof(item) };
	PGresult *page = page_new();

	begin();
	for (uint32_t i = 0; i < 700; i++)
		page_add(page, i);
	pager_read(ctx, page);
	for (int i = 0; i < 5; i++)
		ck_assert_int_eq(worklist_append(list, &ctx->pager, 0, false), QRET_DONE);
	worklist_set_clock(list, ctx->cycle.clock_us);
	PQclear(page);
	qret_ctx_free(ctx);
	ck_assert_uint_eq(qret_worklist_count(list), 3500);
	ck_assert_int_eq(qret_worklist_clock_us(list), 946684800000001LL);
	ck_assert_int_eq(qret_worklist_get(list, 3499, &item), QRET_DONE);
	ck_assert_int_eq(item.partition_id[2] << 8 | item.partition_id[3], 699);
	ck_assert_int_eq(qret_worklist_get(list, 3500, &item), QRET_ERR_ARGUMENT);
	ck_assert_int_eq(qret_worklist_get(list, UINT64_MAX, &item), QRET_ERR_ARGUMENT);
	qret_worklist_free(list);
}
END_TEST

START_TEST(worklist_limit)
{
	struct qret_worklist *list = worklist_new();
	PGresult *page = page_new();

	begin();
	for (uint32_t i = 0; i < 10; i++)
		page_add(page, i);
	pager_read(ctx, page);
	ck_assert(!worklist_full(list, 0));
	ck_assert_int_eq(worklist_append(list, &ctx->pager, 13, false), QRET_DONE);
	ck_assert(!worklist_full(list, 13));
	ck_assert_int_eq(worklist_append(list, &ctx->pager, 13, false), QRET_DONE);
	ck_assert(worklist_full(list, 13));
	ck_assert_uint_eq(qret_worklist_count(list), 13);
	PQclear(page);
	qret_worklist_free(list);
	qret_ctx_free(ctx);
}
END_TEST

START_TEST(worklist_null_and_sizes)
{
	struct qret_worklist *list = worklist_new();
	struct qret_work_item item = { .size = sizeof(item) };

	ck_assert_uint_eq(qret_worklist_count(NULL), 0);
	ck_assert_int_eq(qret_worklist_clock_us(NULL), 0);
	ck_assert_int_eq(qret_worklist_get(NULL, 0, &item), QRET_ERR_ARGUMENT);
	ck_assert_int_eq(qret_worklist_get(list, 0, &item), QRET_ERR_ARGUMENT);
	qret_worklist_free(NULL);
	qret_worklist_free(list);
}
END_TEST

START_TEST(worklist_get_checks_size)
{
	struct qret_worklist *list = worklist_new();
	struct {
		struct qret_work_item item;
		char tail[64];
	} larger;
	PGresult *page = page_new();

	begin();
	page_add(page, 1);
	pager_read(ctx, page);
	ck_assert_int_eq(worklist_append(list, &ctx->pager, 0, false), QRET_DONE);
	memset(&larger, 0xee, sizeof(larger));
	larger.item.size = sizeof(struct qret_work_item) - 8;
	ck_assert_int_eq(qret_worklist_get(list, 0, &larger.item), QRET_ERR_ARGUMENT);
	larger.item.size = 5000;
	ck_assert_int_eq(qret_worklist_get(list, 0, &larger.item), QRET_ERR_ARGUMENT);
	ck_assert_int_eq(qret_worklist_get(list, 0, NULL), QRET_ERR_ARGUMENT);
	larger.item.size = sizeof(larger);
	ck_assert_int_eq(qret_worklist_get(list, 0, &larger.item), QRET_DONE);
	ck_assert_uint_eq(larger.item.size, sizeof(larger));
	ck_assert_int_eq(larger.tail[0], 0);
	ck_assert_int_eq(larger.tail[63], 0);
	PQclear(page);
	qret_worklist_free(list);
	qret_ctx_free(ctx);
}
END_TEST

int main(void)
{
	const TTest *tests[] = { pager_reads_items,
		                 pager_reads_clock_alone,
		                 pager_keeps_first_clock,
		                 pager_full_page_is_followed,
		                 pager_refresh_switches_missing_off,
		                 pager_grows_stale,
		                 worklist_outlives_context,
		                 worklist_limit,
		                 worklist_null_and_sizes,
		                 worklist_get_checks_size,
		                 NULL };

	return unit_run("worklist", tests);
}
