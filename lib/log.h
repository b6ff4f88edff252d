/* SPDX-License-Identifier: MIT */
/* Log records: level gate before any formatting, logfmt text, a rate limit an event. */
#ifndef QRET_LIB_LOG_H
#define QRET_LIB_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "qretention.h"

enum log_event {
#define EVENT(id, ...) LOG_##id,
#include "log_table.h"
#undef EVENT
	LOG_EVENT_COUNT
};

struct log {
	int32_t max_level;
	qret_log_fn fn;
	void *user_data;
	qret_free_fn free_fn;
	bool *in_callback; /* the context's re-entrance mark */
	struct {
		int64_t next_us;
		int64_t suppressed;
	} limit[LOG_EVENT_COUNT];
};

/* One logfmt line under construction; what does not fit is left out. */
struct line {
	size_t length;
	char text[1536];
};

void line_text(struct line *line, const char *key, const char *value);
void line_number(struct line *line, const char *key, int64_t value);
void line_uuid(struct line *line, const char *key, const uint8_t *uuid);

/*
 * Whether a record of this event would be delivered now; counts it as suppressed if only the
 * rate limit is in the way.
 */
bool log_wants(struct log *log, enum log_event event);

/* Starts the line; call only after log_wants said yes. */
void log_begin(struct line *line, enum log_event event);

/* Delivers the line. */
void log_end(struct log *log, enum log_event event, const struct line *line);

/* A record that says nothing but its event. */
void log_plain(struct log *log, enum log_event event);

#endif
