/* SPDX-License-Identifier: MIT */
/* Writes one JSON object a line, always valid. */
#include "json.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define REPLACEMENT "\\ufffd"

/* Length of the UTF-8 sequence that begins here, or 0 if none does (overlong, surrogate, cut off). */
static size_t sequence_length(const unsigned char *text)
{
	size_t length = text[0] >= 0xf0 ? 4 : text[0] >= 0xe0 ? 3 : 2;

	if (text[0] < 0x80)
		return 1;
	if (text[0] < 0xc2 || text[0] > 0xf4)
		return 0;
	for (size_t i = 1; i < length; i++)
		if ((text[i] & 0xc0) != 0x80)
			return 0;
	if ((text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xed && text[1] > 0x9f))
		return 0;
	if ((text[0] == 0xf0 && text[1] < 0x90) || (text[0] == 0xf4 && text[1] > 0x8f))
		return 0;
	return length;
}

static void write_character(FILE *stream, const unsigned char *text, size_t length)
{
	if (length == 0)
		fputs(REPLACEMENT, stream);
	else if (text[0] == '"' || text[0] == '\\')
		fprintf(stream, "\\%c", text[0]);
	else if (text[0] == '\n')
		fputs("\\n", stream);
	else if (text[0] == '\t')
		fputs("\\t", stream);
	else if (text[0] < 0x20 || text[0] == 0x7f)
		fprintf(stream, "\\u%04x", text[0]);
	else
		fwrite(text, 1, length, stream);
}

static void write_text(FILE *stream, const char *value)
{
	const unsigned char *text = (const unsigned char *)value;

	putc('"', stream);
	while (*text != '\0') {
		size_t length = sequence_length(text);

		write_character(stream, text, length);
		text += length == 0 ? 1 : length;
	}
	putc('"', stream);
}

static void begin_member(struct json *json, const char *key)
{
	if (json->has_member)
		putc(',', json->stream);
	json->has_member = 1;
	if (key != NULL) {
		write_text(json->stream, key);
		putc(':', json->stream);
	}
}

static void open_level(struct json *json, char bracket)
{
	putc(bracket, json->stream);
	json->depth++;
	json->has_member = 0;
}

static void close_level(struct json *json, char bracket)
{
	putc(bracket, json->stream);
	json->depth--;
	json->has_member = 1;
}

void json_begin(struct json *json, FILE *stream)
{
	*json = (struct json){ .stream = stream };
	open_level(json, '{');
}

void json_end(struct json *json)
{
	close_level(json, '}');
	putc('\n', json->stream);
}

void json_open_object(struct json *json, const char *key)
{
	begin_member(json, key);
	open_level(json, '{');
}

void json_close_object(struct json *json)
{
	close_level(json, '}');
}

void json_open_array(struct json *json, const char *key)
{
	begin_member(json, key);
	open_level(json, '[');
}

void json_close_array(struct json *json)
{
	close_level(json, ']');
}

void json_text(struct json *json, const char *key, const char *value)
{
	if (value == NULL) {
		json_null(json, key);
		return;
	}
	begin_member(json, key);
	write_text(json->stream, value);
}

void json_integer(struct json *json, const char *key, int64_t value)
{
	begin_member(json, key);
	fprintf(json->stream, "%" PRId64, value);
}

void json_real(struct json *json, const char *key, double value)
{
	if (!isfinite(value)) {
		json_null(json, key);
		return;
	}
	begin_member(json, key);
	fprintf(json->stream, "%.3f", value);
}

void json_bool(struct json *json, const char *key, int value)
{
	begin_member(json, key);
	fputs(value ? "true" : "false", json->stream);
}

void json_null(struct json *json, const char *key)
{
	begin_member(json, key);
	fputs("null", json->stream);
}

void json_raw(struct json *json, const char *key, const char *value)
{
	begin_member(json, key);
	fputs(value, json->stream);
}
