/* SPDX-License-Identifier: MIT */
/* Any bytes as values of a log line: one line, valid UTF-8, quotes closed, never longer than its place. */
#include "fuzz.h"
#include "log.h"
#include "text.h"

static void check(const struct line *line)
{
	bool quoted = false;

	FUZZ_REQUIRE(strlen(line->text) == line->length && line->length < sizeof(line->text));
	FUZZ_REQUIRE(fuzz_is_utf8(line->text));
	for (const unsigned char *at = (const unsigned char *)line->text; *at != '\0'; at++) {
		FUZZ_REQUIRE(*at >= 0x20 && *at != 0x7f);
		FUZZ_REQUIRE(!(*at == 0xc2 && at[1] < 0xa0));
		if (quoted && *at == '\\')
			FUZZ_REQUIRE(*++at != '\0');
		else if (*at == '"')
			quoted = !quoted;
	}
	FUZZ_REQUIRE(!quoted);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *value = fuzz_text(data, size, 1), cut[64];
	size_t capacity = size == 0 ? 1 : data[0] % sizeof(cut) + 1;
	struct line line;

	log_begin(&line, LOG_NOTICE);
	for (const char *at = value; at <= value + strlen(value); at += strlen(at) / 3 + 1) {
		line_text(&line, "message", at);
		line_number(&line, "number", (int64_t)strlen(at));
		check(&line);
	}
	if (capacity > sizeof(cut))
		capacity = sizeof(cut);
	text_copy(cut, capacity, value);
	FUZZ_REQUIRE(strlen(cut) < capacity);
	FUZZ_REQUIRE(fuzz_is_utf8(cut) || !fuzz_is_utf8(value));
	free(value);
	return 0;
}
