/* SPDX-License-Identifier: MIT */
/* Encoding and decoding of binary values. */
#include "value.h"

#include <stdlib.h>
#include <string.h>

#include <libpq-fe.h>

#include "qretention.h"
#include "text.h"
#include "uuid.h"

/* Object ids of built-in types: fixed for ever by the server's catalogue. */
#define TYPE_BOOL        16
#define TYPE_INT8        20
#define TYPE_INT4        23
#define TYPE_TEXT        25
#define TYPE_TIMESTAMPTZ 1184
#define TYPE_UUID        2950
#define TYPE_UUID_ARRAY  2951

/* The server counts from 2000-01-01, and its first timestamp is in 4714 BC. */
#define SERVER_EPOCH_US 946684800000000LL
#define SERVER_FIRST_US (-211813488000000000LL)

static void put_big_endian(uint8_t *target, uint64_t value, int bytes)
{
	for (int i = bytes - 1; i >= 0; i--, value >>= 8)
		target[i] = (uint8_t)value;
}

static uint64_t get_big_endian(const char *source, int bytes)
{
	uint64_t value = 0;

	for (int i = 0; i < bytes; i++)
		value = value << 8 | (uint8_t)source[i];
	return value;
}

static void append(struct parameters *parameters, unsigned int type, const void *value,
                   size_t length)
{
	int index = parameters->count++;

	parameters->types[index] = type;
	parameters->values[index] = value;
	parameters->lengths[index] = (int)length;
	parameters->formats[index] = 1;
}

static void append_integer(struct parameters *parameters, unsigned int type, uint64_t value,
                           int bytes)
{
	uint8_t *scalar = parameters->scalars[parameters->count];

	put_big_endian(scalar, value, bytes);
	append(parameters, type, scalar, (size_t)bytes);
}

void parameter_int4(struct parameters *parameters, int32_t value)
{
	append_integer(parameters, TYPE_INT4, (uint32_t)value, 4);
}

void parameter_int8(struct parameters *parameters, int64_t value)
{
	append_integer(parameters, TYPE_INT8, (uint64_t)value, 8);
}

void parameter_bool(struct parameters *parameters, bool value)
{
	append_integer(parameters, TYPE_BOOL, value, 1);
}

void parameter_text(struct parameters *parameters, const char *value)
{
	append(parameters, TYPE_TEXT, value, value == NULL ? 0 : strlen(value));
}

void parameter_uuid(struct parameters *parameters, const uint8_t *value)
{
	append(parameters, TYPE_UUID, value, UUID_BYTES);
}

void parameter_timestamp(struct parameters *parameters, int64_t unix_us)
{
	int64_t server_us;

	if (unix_us == QRET_CUTOFF_OFF) {
		append(parameters, TYPE_TIMESTAMPTZ, NULL, 0);
		return;
	}
	/*
	 * Earlier than the server can say: nothing is older than that either, so its first
	 * instant serves.
	 */
	server_us = unix_us < SERVER_FIRST_US + SERVER_EPOCH_US ? SERVER_FIRST_US
	                                                        : unix_us - SERVER_EPOCH_US;
	append_integer(parameters, TYPE_TIMESTAMPTZ, (uint64_t)server_us, 8);
}

#define ARRAY_HEADER_BYTES 20
#define ARRAY_UUID_BYTES   (4 + UUID_BYTES)

size_t uuid_array_bytes(uint32_t count)
{
	return ARRAY_HEADER_BYTES + (size_t)count * ARRAY_UUID_BYTES;
}

void uuid_array_begin(uint8_t *target, uint32_t count)
{
	put_big_endian(target, 1, 4);     /* dimensions */
	put_big_endian(target + 4, 0, 4); /* no NULLs */
	put_big_endian(target + 8, TYPE_UUID, 4);
	put_big_endian(target + 12, count, 4);
	put_big_endian(target + 16, 1, 4); /* lower bound */
}

void uuid_array_set(uint8_t *target, uint32_t index, const uint8_t *uuid)
{
	uint8_t *element = target + ARRAY_HEADER_BYTES + (size_t)index * ARRAY_UUID_BYTES;

	put_big_endian(element, UUID_BYTES, 4);
	memcpy(element + 4, uuid, UUID_BYTES);
}

void parameter_uuid_array(struct parameters *parameters, const uint8_t *array, uint32_t count)
{
	append(parameters, TYPE_UUID_ARRAY, array, uuid_array_bytes(count));
}

void blob_clear(struct blob *blob)
{
	free(blob->bytes);
	blob->bytes = NULL;
	blob->length = 0;
}

void blob_set(struct blob *blob, const struct pg_result *result, int row, int column)
{
	blob_clear(blob);
	blob->type = PQftype(result, column);
	if (result_is_null(result, row, column))
		return;
	blob->length = PQgetlength(result, row, column);
	/*
	 * One byte at least, so that an empty value is not taken for NULL. Out of memory it is
	 * NULL, which is always right.
	 */
	blob->bytes = malloc((size_t)blob->length + 1);
	if (blob->bytes != NULL)
		memcpy(blob->bytes, PQgetvalue(result, row, column), (size_t)blob->length);
}

void parameter_blob(struct parameters *parameters, const struct blob *blob)
{
	append(parameters, blob->type, blob->bytes, (size_t)blob->length);
}

int result_rows(const struct pg_result *result)
{
	return PQntuples(result);
}

bool result_is_null(const struct pg_result *result, int row, int column)
{
	/* Asked for what is not there, libpq answers, but complains on stderr first. */
	return row < 0 || row >= PQntuples(result) || column >= PQnfields(result) ||
	       PQgetisnull(result, row, column);
}

int64_t result_integer(const struct pg_result *result, int row, int column, int64_t fallback)
{
	const char *value;

	if (result_is_null(result, row, column))
		return fallback;
	value = PQgetvalue(result, row, column);
	switch (PQgetlength(result, row, column)) {
	case 2:
		return (int16_t)get_big_endian(value, 2);
	case 4:
		return (int32_t)get_big_endian(value, 4);
	case 8:
		return (int64_t)get_big_endian(value, 8);
	default:
		return fallback;
	}
}

bool result_bool(const struct pg_result *result, int row, int column)
{
	return !result_is_null(result, row, column) && PQgetlength(result, row, column) == 1 &&
	       PQgetvalue(result, row, column)[0] != 0;
}

int64_t result_timestamp(const struct pg_result *result, int row, int column)
{
	int64_t server_us = result_integer(result, row, column, INT64_MIN);

	if (server_us == INT64_MIN)
		return QRET_CUTOFF_OFF;
	return server_us > INT64_MAX - SERVER_EPOCH_US ? INT64_MAX : server_us + SERVER_EPOCH_US;
}

bool result_uuid(const struct pg_result *result, int row, int column, uint8_t *ret_uuid)
{
	if (result_is_null(result, row, column) || PQgetlength(result, row, column) != UUID_BYTES)
		return false;
	memcpy(ret_uuid, PQgetvalue(result, row, column), UUID_BYTES);
	return true;
}

void result_text(const struct pg_result *result, int row, int column, char *ret_text,
                 size_t capacity)
{
	text_copy(ret_text, capacity,
	          result_is_null(result, row, column) ? "" : PQgetvalue(result, row, column));
}

void result_free(struct pg_result *result)
{
	PQclear(result);
}
