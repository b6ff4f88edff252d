/* SPDX-License-Identifier: MIT */
/* L15: binary in, binary out. Results are made by libpq itself. */
#include "unit.h"

#include <libpq-fe.h>

#include "uuid.h"
#include "value.h"

#define EPOCH_US 946684800000000LL /* 2000-01-01, where the server's count begins */

static int64_t bytes_to_integer(const struct parameters *parameters, int index)
{
	int64_t value = 0;

	for (int i = 0; i < parameters->lengths[index]; i++)
		value = (int64_t)((uint64_t)value << 8 | (uint8_t)parameters->values[index][i]);
	return value;
}

START_TEST(parameter_integers)
{
	struct parameters parameters = { 0 };

	parameter_int4(&parameters, -2);
	parameter_int8(&parameters, INT64_MIN);
	parameter_int8(&parameters, 0x0102030405060708);
	parameter_bool(&parameters, true);
	ck_assert_int_eq(parameters.count, 4);
	ck_assert_int_eq(parameters.types[0], 23);
	ck_assert_int_eq(parameters.lengths[0], 4);
	ck_assert_int_eq(bytes_to_integer(&parameters, 0), 0xfffffffe);
	ck_assert_int_eq(parameters.types[1], 20);
	ck_assert_int_eq(bytes_to_integer(&parameters, 1), INT64_MIN);
	ck_assert_int_eq(parameters.values[2][0], 1);
	ck_assert_int_eq(parameters.values[2][7], 8);
	ck_assert_int_eq(parameters.types[3], 16);
	ck_assert_int_eq(parameters.lengths[3], 1);
	ck_assert_int_eq(parameters.values[3][0], 1);
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(parameters.formats[i], 1);
}
END_TEST

START_TEST(parameter_nulls)
{
	struct parameters parameters = { 0 };

	parameter_text(&parameters, NULL);
	parameter_uuid(&parameters, NULL);
	parameter_timestamp(&parameters, QRET_CUTOFF_OFF);
	parameter_text(&parameters, "x");
	ck_assert_ptr_null(parameters.values[0]);
	ck_assert_ptr_null(parameters.values[1]);
	ck_assert_ptr_null(parameters.values[2]);
	ck_assert_int_eq(parameters.types[0], 25);
	ck_assert_int_eq(parameters.types[1], 2950);
	ck_assert_int_eq(parameters.types[2], 1184);
	ck_assert_int_eq(parameters.lengths[3], 1);
}
END_TEST

START_TEST(parameter_timestamps)
{
	struct parameters parameters = { 0 };

	parameter_timestamp(&parameters, EPOCH_US);
	parameter_timestamp(&parameters, 0);
	parameter_timestamp(&parameters, INT64_MAX);
	/* Older than any timestamp the server has: its first, so that nothing is older; never a wrap into the future. */
	parameter_timestamp(&parameters, INT64_MIN + 1);
	parameter_timestamp(&parameters, -211813488000000000LL + EPOCH_US - 1);
	parameter_timestamp(&parameters, -211813488000000000LL + EPOCH_US);
	ck_assert_int_eq(bytes_to_integer(&parameters, 0), 0);
	ck_assert_int_eq(bytes_to_integer(&parameters, 1), -EPOCH_US);
	ck_assert_int_eq(bytes_to_integer(&parameters, 2), INT64_MAX - EPOCH_US);
	ck_assert_int_eq(bytes_to_integer(&parameters, 3), -211813488000000000LL);
	ck_assert_int_eq(bytes_to_integer(&parameters, 4), -211813488000000000LL);
	ck_assert_int_eq(bytes_to_integer(&parameters, 5), -211813488000000000LL);
}
END_TEST

START_TEST(parameter_uuid_arrays)
{
	static const uint8_t header[] = { 0,    0,    0, 1, 0, 0, 0, 0, 0, 0,
		                          0x0b, 0x86, 0, 0, 0, 2, 0, 0, 0, 1 };
	uint8_t array[60], id[16];
	struct parameters parameters = { 0 };

	ck_assert_uint_eq(uuid_array_bytes(2), sizeof(array));
	ck_assert_uint_eq(uuid_array_bytes(0), 20);
	uuid_array_begin(array, 2);
	memset(id, 0xaa, sizeof(id));
	uuid_array_set(array, 0, id);
	memset(id, 0xbb, sizeof(id));
	uuid_array_set(array, 1, id);
	ck_assert_mem_eq(array, header, sizeof(header));
	ck_assert_int_eq(array[23], 16);
	ck_assert_int_eq(array[24], 0xaa);
	ck_assert_int_eq(array[43], 16);
	ck_assert_int_eq(array[59], 0xbb);
	parameter_uuid_array(&parameters, array, 2);
	ck_assert_int_eq(parameters.lengths[0], 60);
	ck_assert_int_eq(parameters.types[0], 2951);
}
END_TEST

/* One row of one column each, as the server would send it. */
static PGresult *result_of(int columns, const char *const *values, const int *lengths)
{
	static char name[] = "c";
	PGresAttDesc attributes[8] = { { 0 } };
	PGresult *result = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);

	for (int i = 0; i < columns; i++) {
		attributes[i].name = name;
		attributes[i].format = 1;
	}
	PQsetResultAttrs(result, columns, attributes);
	for (int i = 0; i < columns; i++)
		PQsetvalue(result, 0, i, (char *)values[i], values[i] == NULL ? -1 : lengths[i]);
	return result;
}

START_TEST(result_integers)
{
	static const char *const values[] = { "\xff\xfe", "\xff\xff\xff\xfd",
		                              "\x7f\xff\xff\xff\xff\xff\xff\xff", NULL, "\x01" };
	static const int lengths[] = { 2, 4, 8, 0, 1 };
	PGresult *result = result_of(5, values, lengths);

	ck_assert_int_eq(result_rows(result), 1);
	ck_assert_int_eq(result_integer(result, 0, 0, 7), -2);
	ck_assert_int_eq(result_integer(result, 0, 1, 7), -3);
	ck_assert_int_eq(result_integer(result, 0, 2, 7), INT64_MAX);
	ck_assert_int_eq(result_integer(result, 0, 3, 7), 7);
	ck_assert_int_eq(result_integer(result, 0, 4, 7), 7);
	ck_assert_int_eq(result_integer(result, 0, 5, 7), 7);
	ck_assert(result_is_null(result, 0, 3));
	ck_assert(result_is_null(result, 0, 99));
	ck_assert(!result_is_null(result, 0, 0));
	result_free(result);
}
END_TEST

START_TEST(result_timestamps)
{
	static const char *const values[] = { "\0\0\0\0\0\0\0\0",
		                              "\x7f\xff\xff\xff\xff\xff\xff\xff",
		                              "\x80\0\0\0\0\0\0\0", NULL };
	static const int lengths[] = { 8, 8, 8, 0 };
	PGresult *result = result_of(4, values, lengths);

	ck_assert_int_eq(result_timestamp(result, 0, 0), EPOCH_US);
	ck_assert_int_eq(result_timestamp(result, 0, 1), INT64_MAX); /* infinity */
	ck_assert_int_eq(result_timestamp(result, 0, 2),
	                 QRET_CUTOFF_OFF); /* -infinity: nothing is older */
	ck_assert_int_eq(result_timestamp(result, 0, 3), QRET_CUTOFF_OFF);
	result_free(result);
}
END_TEST

START_TEST(result_bools_uuids_texts)
{
	static const char *const values[] = {
		"\1", "\0", "\0\0\0\1", "0123456789abcdef", "short", "caf\xc3\xa9", NULL
	};
	static const int lengths[] = { 1, 1, 4, 16, 5, 5, 0 };
	PGresult *result = result_of(7, values, lengths);
	uint8_t id[16] = { 0 };
	char text[5];

	ck_assert(result_bool(result, 0, 0));
	ck_assert(!result_bool(result, 0, 1));
	ck_assert(!result_bool(result, 0, 2));
	ck_assert(!result_bool(result, 0, 6));
	ck_assert(result_uuid(result, 0, 3, id));
	ck_assert_mem_eq(id, "0123456789abcdef", 16);
	ck_assert(!result_uuid(result, 0, 4, id));
	ck_assert(!result_uuid(result, 0, 6, id));
	ck_assert_mem_eq(id, "0123456789abcdef", 16);
	result_text(result, 0, 5, text, sizeof(text));
	ck_assert_str_eq(text, "caf");
	result_text(result, 0, 6, text, sizeof(text));
	ck_assert_str_eq(text, "");
	result_free(result);
}
END_TEST

static int notices;

static void on_notice(void *data, const PGresult *result)
{
	(void)data;
	(void)result;
	notices++;
}

/* A statement that answers with no row, or a row that is not there, reads as NULLs; libpq must not be asked for it,
 * since it would complain on stderr. */
START_TEST(result_row_out_of_range_is_null)
{
	PGconn *connection = PQconnectStart("host=/nonexistent");
	PGresult *result;
	static char name[] = "c";
	PGresAttDesc attribute = { .name = name, .format = 1 };
	uint8_t id[16];
	char text[4];

	PQsetNoticeReceiver(connection, on_notice, NULL);
	result = PQmakeEmptyPGresult(connection, PGRES_TUPLES_OK);
	PQsetResultAttrs(result, 1, &attribute);
	notices = 0;
	ck_assert_int_eq(result_rows(result), 0);
	ck_assert_int_eq(result_integer(result, 0, 0, 7), 7);
	ck_assert(!result_bool(result, 0, 0));
	ck_assert(!result_uuid(result, 5, 0, id));
	ck_assert_int_eq(result_timestamp(result, -1, 0), QRET_CUTOFF_OFF);
	result_text(result, 0, 0, text, sizeof(text));
	ck_assert_str_eq(text, "");
	ck_assert_int_eq(notices, 0);
	PQclear(result);
	PQfinish(connection);
}
END_TEST

START_TEST(uuid_as_text)
{
	static const uint8_t id[16] = { 0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef,
		                        0,    0,    0,    0,    0,    0,    0,    0xff };
	char text[UUID_TEXT_BYTES];

	uuid_text(id, text);
	ck_assert_str_eq(text, "01234567-89ab-cdef-0000-0000000000ff");
}
END_TEST

int main(void)
{
	const TTest *tests[] = { parameter_integers,
		                 parameter_nulls,
		                 parameter_timestamps,
		                 parameter_uuid_arrays,
		                 result_integers,
		                 result_timestamps,
		                 result_bools_uuids_texts,
		                 result_row_out_of_range_is_null,
		                 uuid_as_text,
		                 NULL };

	return unit_run("value", tests);
}
