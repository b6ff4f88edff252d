/* SPDX-License-Identifier: MIT */
/* L21, B34, B90: the level gate, the rate limits, and lines that any log system can take. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>

#include "log.h"

static struct log tested;
static bool in_callback;

static struct {
	int count;
	int32_t level;
	char event[64], text[2048];
	int64_t suppressed;
	bool was_in_callback;
} seen;

static void on_record(void *user_data, const struct qret_log_record *record)
{
	ck_assert_ptr_eq(user_data, &seen);
	ck_assert_uint_eq(record->size, sizeof(*record));
	seen.count++;
	seen.level = record->level;
	snprintf(seen.event, sizeof(seen.event), "%s", record->event);
	snprintf(seen.text, sizeof(seen.text), "%s", record->text);
	seen.suppressed = record->suppressed;
	seen.was_in_callback = in_callback;
}

static void begin(int32_t max_level)
{
	memset(&tested, 0, sizeof(tested));
	memset(&seen, 0, sizeof(seen));
	in_callback = false;
	tested.max_level = max_level;
	tested.fn = on_record;
	tested.user_data = &seen;
	tested.in_callback = &in_callback;
}

static const char *line_of(const char *value)
{
	static struct line line;

	log_begin(&line, LOG_NOTICE);
	line_text(&line, "message", value);
	return line.text;
}

START_TEST(log_level_gate)
{
	begin(QRET_LOG_INFO);
	ck_assert(log_wants(&tested, LOG_SWEPT));
	ck_assert(log_wants(&tested, LOG_CYCLE_ERROR));
	ck_assert(!log_wants(&tested, LOG_IDLE));
	tested.max_level = QRET_LOG_NONE;
	ck_assert(!log_wants(&tested, LOG_CYCLE_ERROR));
	tested.max_level = QRET_LOG_DEBUG;
	ck_assert(log_wants(&tested, LOG_IDLE));
	tested.fn = NULL;
	ck_assert(!log_wants(&tested, LOG_SWEPT));
}
END_TEST

START_TEST(log_record_delivered)
{
	begin(QRET_LOG_DEBUG);
	log_plain(&tested, LOG_BUSY);
	ck_assert_int_eq(seen.count, 1);
	ck_assert_str_eq(seen.event, "busy");
	ck_assert_str_eq(seen.text, "event=busy");
	ck_assert_int_eq(seen.level, QRET_LOG_DEBUG);
	ck_assert_int_eq(seen.suppressed, 0);
	ck_assert(seen.was_in_callback);
	ck_assert(!in_callback);
}
END_TEST

/* One line within the limit, however often it is said; the next one tells how many were swallowed. */
START_TEST(log_rate_limit)
{
	begin(QRET_LOG_DEBUG);
	for (int i = 0; i < 1000; i++)
		log_plain(&tested, LOG_CYCLE_ERROR);
	ck_assert_int_eq(seen.count, 1);
	log_plain(&tested, LOG_METRICS_PURGE_ERROR);
	ck_assert_int_eq(seen.count, 2);
	ck_assert_int_eq(seen.suppressed, 0);
	ck_assert_int_gt(tested.limit[LOG_CYCLE_ERROR].next_us - qret_now_us(), 25000000);
	tested.limit[LOG_CYCLE_ERROR].next_us = qret_now_us();
	log_plain(&tested, LOG_CYCLE_ERROR);
	ck_assert_int_eq(seen.count, 3);
	ck_assert_int_eq(seen.suppressed, 999);
	tested.limit[LOG_CYCLE_ERROR].next_us = qret_now_us();
	log_plain(&tested, LOG_CYCLE_ERROR);
	ck_assert_int_eq(seen.suppressed, 0);
}
END_TEST

/* L21, L10: which events are limited, and how much. */
START_TEST(log_limits_are_as_decided)
{
	begin(QRET_LOG_DEBUG);
	log_plain(&tested, LOG_SWEPT);
	log_plain(&tested, LOG_SWEPT);
	ck_assert_int_eq(seen.count, 2);
	log_plain(&tested, LOG_METRICS_PURGE_ERROR);
	ck_assert_int_gt(tested.limit[LOG_METRICS_PURGE_ERROR].next_us - qret_now_us(), 55000000);
	ck_assert_int_eq(seen.level, QRET_LOG_WARN);
	log_plain(&tested, LOG_CYCLE_ERROR);
	ck_assert_int_eq(seen.level, QRET_LOG_ERROR);
}
END_TEST

/* What nobody asked for is not counted as suppressed. */
START_TEST(log_gate_is_before_limit)
{
	begin(QRET_LOG_NONE);
	for (int i = 0; i < 10; i++)
		log_plain(&tested, LOG_CYCLE_ERROR);
	ck_assert_int_eq(tested.limit[LOG_CYCLE_ERROR].suppressed, 0);
}
END_TEST

START_TEST(log_values_quoted)
{
	ck_assert_str_eq(line_of("plain"), "event=notice message=plain");
	ck_assert_str_eq(line_of(""), "event=notice message=\"\"");
	ck_assert_str_eq(line_of("two words"), "event=notice message=\"two words\"");
	ck_assert_str_eq(line_of("a=b"), "event=notice message=\"a=b\"");
	ck_assert_str_eq(line_of("say \"x\\y\""), "event=notice message=\"say \\\"x\\\\y\\\"\"");
	ck_assert_str_eq(line_of("a\nb\tc\r"), "event=notice message=\"a\\nb\\tc\\x0d\"");
	ck_assert_str_eq(line_of("\x1b[31m\x7f"), "event=notice message=\"\\x1b[31m\\x7f\"");
	ck_assert_str_eq(line_of("caf\xc3\xa9"), "event=notice message=\"caf\xc3\xa9\"");
	ck_assert_str_eq(line_of("bad\xff\xc3"), "event=notice message=\"bad\\xff\\xc3\"");
	/* a C1 control drives terminals too */
	ck_assert_str_eq(line_of("\xc2\x9b"), "event=notice message=\"\\xc2\\x9b\"");
}
END_TEST

START_TEST(log_numbers_and_uuids)
{
	struct line line;
	uint8_t id[16] = { 0xab };

	log_begin(&line, LOG_SWEPT);
	line_number(&line, "least", INT64_MIN);
	line_number(&line, "zero", 0);
	line_uuid(&line, "partition", id);
	ck_assert_str_eq(
		line.text,
		"event=swept least=-9223372036854775808 zero=0 partition=ab000000-0000-0000-0000-000000000000");
}
END_TEST

static void assert_is_a_line(const struct line *line)
{
	ck_assert_uint_eq(strlen(line->text), line->length);
	ck_assert_uint_lt(line->length, sizeof(line->text));
	ck_assert(unit_is_utf8(line->text));
	for (const char *at = line->text; *at != '\0'; at++) {
		if ((unsigned char)*at < 0x20 || *at == 0x7f)
			ck_abort_msg("control character %02x", *at);
	}
}

/* What does not fit is cut so that the rest still parses; later keys are left out whole. */
START_TEST(log_long_values_are_cut)
{
	static const char *const units[] = { "x",        "\xe2\x82\xac",    "\xff", "\"", "\n",
		                             "\xc2\x80", "\xf0\x9f\x98\x80" };

	for (size_t i = 0; i < COUNT_OF(units); i++) {
		for (size_t shift = 0; shift < 9; shift++) {
			struct line line;
			char value[4096] = "";
			int quotes = 0;

			memset(value, ' ', shift);
			for (size_t at = shift; at + 8 < sizeof(value); at += strlen(units[i]))
				memcpy(value + at, units[i], strlen(units[i]));
			log_begin(&line, LOG_NOTICE);
			line_text(&line, "message", value);
			line_text(&line, "later", value);
			line_number(&line, "last", 1);
			assert_is_a_line(&line);
			for (const char *at = line.text; *at != '\0'; at++) {
				if (*at == '\\')
					at++;
				else
					quotes += *at == '"';
			}
			ck_assert_int_eq(quotes % 2, 0);
		}
	}
}
END_TEST

START_TEST(log_random_bytes_are_one_line)
{
	srand(1);
	for (int round = 0; round < 2000; round++) {
		struct line line;
		char value[64];
		size_t length = (size_t)rand() % sizeof(value);

		for (size_t i = 0; i < length; i++)
			value[i] = (char)(rand() % 255 + 1);
		value[length == 0 ? 0 : length - 1] = '\0';
		log_begin(&line, LOG_NOTICE);
		line_text(&line, "message", value);
		if (!unit_is_utf8(line.text) || strchr(line.text, '\n') != NULL)
			ck_abort_msg("round %d: %s", round, line.text);
	}
}
END_TEST

int main(void)
{
	const TTest *tests[] = { log_level_gate,
		                 log_record_delivered,
		                 log_rate_limit,
		                 log_limits_are_as_decided,
		                 log_gate_is_before_limit,
		                 log_values_quoted,
		                 log_numbers_and_uuids,
		                 log_long_values_are_cut,
		                 log_random_bytes_are_one_line,
		                 NULL };

	return unit_run("log", tests);
}
