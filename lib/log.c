/* SPDX-License-Identifier: MIT */
/* Builds logfmt lines and hands them to the host. Writes nowhere itself. */
#include "log.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "text.h"
#include "uuid.h"

static const struct {
	const char *name;
	int32_t level;
	int64_t interval_seconds;
} events[LOG_EVENT_COUNT] = {
#define EVENT(id, name, level, seconds, meaning, action) \
	[LOG_##id] = { name, QRET_LOG_##level, seconds },
#include "log_table.h"
#undef EVENT
};

static void append(struct line *line, const char *text, size_t length)
{
	if (line->length + length >= sizeof(line->text))
		return;
	memcpy(line->text + line->length, text, length);
	line->length += length;
	line->text[line->length] = '\0';
}

static void append_key(struct line *line, const char *key)
{
	if (line->length > 0)
		append(line, " ", 1);
	append(line, key, strlen(key));
	append(line, "=", 1);
}

static bool needs_quotes(const char *value)
{
	if (value[0] == '\0')
		return true;
	for (const unsigned char *at = (const unsigned char *)value; *at != '\0'; at++) {
		if (*at <= ' ' || *at >= 0x7f || *at == '"' || *at == '=' || *at == '\\')
			return true;
	}
	return false;
}

/* Appends one character of a quoted value, escaped; returns how many bytes of the value it took. */
static size_t append_character(struct line *line, const char *at)
{
	unsigned char byte = (unsigned char)*at;
	size_t length = text_character(at);
	/* C1 controls, U+0080 to U+009F, drive terminals as the C0 ones do. */
	bool control = byte < 0x20 || byte == 0x7f ||
	               (length == 2 && byte == 0xc2 && (unsigned char)at[1] < 0xa0);
	char escape[8];

	if (byte == '"' || byte == '\\') {
		escape[0] = '\\';
		escape[1] = (char)byte;
		append(line, escape, 2);
		return 1;
	}
	if (length > 0 && !control) {
		append(line, at, length);
		return length;
	}
	if (byte == '\n')
		append(line, "\\n", 2);
	else if (byte == '\t')
		append(line, "\\t", 2);
	else
		append(line, escape, (size_t)snprintf(escape, sizeof(escape), "\\x%02x", byte));
	if (length == 2) {
		append(line, escape,
		       (size_t)snprintf(escape, sizeof(escape), "\\x%02x", (unsigned char)at[1]));
		return 2;
	}
	return 1;
}

void line_text(struct line *line, const char *key, const char *value)
{
	/* Room for the closing quote is kept, so that a cut value still parses. */
	const size_t limit = sizeof(line->text) - 8;

	if (line->length + strlen(key) + 8 >= limit)
		return;
	append_key(line, key);
	if (!needs_quotes(value)) {
		append(line, value,
		       strlen(value) < limit - line->length ? strlen(value) : limit - line->length);
		return;
	}
	append(line, "\"", 1);
	while (*value != '\0' && line->length + 8 < limit)
		value += append_character(line, value);
	append(line, "\"", 1);
}

void line_number(struct line *line, const char *key, int64_t value)
{
	char digits[24];

	snprintf(digits, sizeof(digits), "%" PRId64, value);
	line_text(line, key, digits);
}

void line_uuid(struct line *line, const char *key, const uint8_t *uuid)
{
	char text[UUID_TEXT_BYTES];

	uuid_text(uuid, text);
	line_text(line, key, text);
}

bool log_wants(struct log *log, enum log_event event)
{
	if (log->fn == NULL || events[event].level > log->max_level)
		return false;
	if (events[event].interval_seconds > 0 && qret_now_us() < log->limit[event].next_us) {
		log->limit[event].suppressed++;
		return false;
	}
	return true;
}

void log_begin(struct line *line, enum log_event event)
{
	line->length = 0;
	line->text[0] = '\0';
	line_text(line, "event", events[event].name);
}

void log_end(struct log *log, enum log_event event, const struct line *line)
{
	struct qret_log_record record = { 0 };

	record.size = sizeof(record);
	record.level = events[event].level;
	record.event = events[event].name;
	record.text = line->text;
	record.suppressed = log->limit[event].suppressed;
	log->limit[event].suppressed = 0;
	log->limit[event].next_us = qret_now_us() + events[event].interval_seconds * US_PER_SECOND;
	*log->in_callback = true;
	log->fn(log->user_data, &record);
	*log->in_callback = false;
}

void log_plain(struct log *log, enum log_event event)
{
	struct line line;

	if (!log_wants(log, event))
		return;
	log_begin(&line, event);
	log_end(log, event, &line);
}
