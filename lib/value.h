/* SPDX-License-Identifier: MIT */
/*
 * Values on the wire, in the server's binary formats: parameters out, result columns in. Nothing
 * travels as text that the settings of either side could read in two ways.
 */
#ifndef QRET_LIB_VALUE_H
#define QRET_LIB_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PARAMETERS_MAX 12

struct pg_result;

struct parameters {
	int count;
	unsigned int types[PARAMETERS_MAX];
	const char *values[PARAMETERS_MAX];
	int lengths[PARAMETERS_MAX];
	int formats[PARAMETERS_MAX];
	uint8_t scalars[PARAMETERS_MAX][8];
};

/* Each appends one parameter. Pointers must stay valid until the statement is sent. */
void parameter_int4(struct parameters *parameters, int32_t value);
void parameter_int8(struct parameters *parameters, int64_t value);
void parameter_bool(struct parameters *parameters, bool value);
void parameter_text(struct parameters *parameters, const char *value);    /* NULL: NULL */
void parameter_uuid(struct parameters *parameters, const uint8_t *value); /* NULL: NULL */
void parameter_timestamp(struct parameters *parameters,
                         int64_t unix_us); /* QRET_CUTOFF_OFF: NULL */

/* Room for a uuid[] of `count`, in bytes; and its contents, written into target. */
size_t uuid_array_bytes(uint32_t count);
void uuid_array_begin(uint8_t *target, uint32_t count);
void uuid_array_set(uint8_t *target, uint32_t index, const uint8_t *uuid);
void parameter_uuid_array(struct parameters *parameters, const uint8_t *array, uint32_t count);

/* A value that is kept as it came and sent back as it was: nobody here looks inside. */
struct blob {
	unsigned int type;
	int length;
	char *bytes; /* NULL: the value is NULL */
};

void blob_set(struct blob *blob, const struct pg_result *result, int row, int column);
void blob_clear(struct blob *blob);
void parameter_blob(struct parameters *parameters, const struct blob *blob);

/* Result columns; a NULL reads as the fallback, a column of another width as well. */
int result_rows(const struct pg_result *result);
bool result_is_null(const struct pg_result *result, int row, int column);
int64_t result_integer(const struct pg_result *result, int row, int column,
                       int64_t fallback); /* int2, int4, int8 */
bool result_bool(const struct pg_result *result, int row, int column);
int64_t result_timestamp(const struct pg_result *result, int row,
                         int column); /* unix us; NULL: QRET_CUTOFF_OFF */
bool result_uuid(const struct pg_result *result, int row, int column, uint8_t *ret_uuid);
void result_text(const struct pg_result *result, int row, int column, char *ret_text,
                 size_t capacity);
void result_free(struct pg_result *result);

#endif
