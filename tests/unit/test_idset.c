/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include "idset.h"

static void id_of(uint32_t number, uint8_t *ret_id)
{
	/* Like a version 4 UUID: what differs is everywhere. */
	uint32_t mixed = number * 2654435761u;

	memset(ret_id, (int)(mixed >> 24) | 1, 16);
	memcpy(ret_id + 12, &mixed, sizeof(mixed));
	memcpy(ret_id, &number, sizeof(number));
}

START_TEST(idset_counts_each_once)
{
	struct idset set = { 0 };
	uint8_t id[16];
	int added = 0;

	for (int round = 0; round < 3; round++) {
		for (uint32_t i = 0; i < 10000; i++) {
			id_of(i, id);
			added += idset_add(&set, id);
		}
	}
	ck_assert_int_eq(added, 10000);
	ck_assert_uint_eq(set.count, 10000);
	ck_assert_uint_eq(set.capacity & (set.capacity - 1), 0);
	ck_assert_uint_ge(set.capacity, 2 * set.count);
	idset_free(&set);
	ck_assert_uint_eq(set.capacity, 0);
}
END_TEST

/* All in one place of the table: slow, but right. */
START_TEST(idset_collisions)
{
	struct idset set = { 0 };
	uint8_t id[16] = { 0 };

	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 200; i++) {
			id[0] = (uint8_t)(i + 1);
			ck_assert_int_eq(idset_add(&set, id), round == 0);
		}
	}
	idset_free(&set);
}
END_TEST

START_TEST(idset_cleared_keeps_memory)
{
	struct idset set = { 0 };
	uint8_t id[16];
	uint32_t capacity;

	for (uint32_t i = 0; i < 100; i++) {
		id_of(i, id);
		idset_add(&set, id);
	}
	capacity = set.capacity;
	idset_clear(&set);
	ck_assert_uint_eq(set.count, 0);
	ck_assert_uint_eq(set.capacity, capacity);
	id_of(5, id);
	ck_assert_int_eq(idset_add(&set, id), 1);
	ck_assert_int_eq(idset_add(&set, id), 0);
	idset_free(&set);
	idset_clear(&set);
	idset_free(&set);
}
END_TEST

int main(void)
{
	const TTest *tests[] = { idset_counts_each_once, idset_collisions,
		                 idset_cleared_keeps_memory, NULL };

	return unit_run("idset", tests);
}
