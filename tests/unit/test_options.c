/* SPDX-License-Identifier: MIT */
/* The option table: parsing, ranges, floors, what a refusal says. B25, B28, B29, B57, B80. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>

#include "options.h"

static struct options options;
static struct error error;
static bool clamped;

static int set(const char *name, const char *value)
{
	return options_set(&options, name, value, &clamped, &error);
}

static const char *get(const char *name)
{
	static char value[256];

	ck_assert_int_ge(options_get(&options, name, value, sizeof(value)), 0);
	return value;
}

static struct qret_option_info info_of(uint32_t index)
{
	struct qret_option_info info = { .size = sizeof(info) };

	ck_assert_int_eq(qret_option_get_info(index, &info), QRET_DONE);
	return info;
}

START_TEST(options_table_is_complete)
{
	struct qret_option_info info = { .size = sizeof(info) };

	for (uint32_t i = 0; i < OPTION_COUNT; i++) {
		info = info_of(i);
		ck_assert_str_eq(info.name, option_name((enum option)i));
		ck_assert_str_ne(info.help, "");
		ck_assert_str_ne(info.range, "");
		ck_assert(strcmp(info.type, "bool") == 0 || strcmp(info.type, "int") == 0 ||
		          strcmp(info.type, "enum") == 0 || strcmp(info.type, "text") == 0);
		ck_assert_ptr_nonnull(info.env);
		for (uint32_t j = 0; j < i; j++) {
			struct qret_option_info other = info_of(j);

			ck_assert_str_ne(info.name, other.name);
			ck_assert(info.env[0] == '\0' || strcmp(info.env, other.env) != 0);
		}
	}
	ck_assert_int_eq(qret_option_get_info(OPTION_COUNT, &info), QRET_ERR_ARGUMENT);
	ck_assert_int_eq(qret_option_get_info(UINT32_MAX, &info), QRET_ERR_ARGUMENT);
	ck_assert_int_eq(qret_option_get_info(0, NULL), QRET_ERR_ARGUMENT);
	info.size = 4;
	ck_assert_int_eq(qret_option_get_info(0, &info), QRET_ERR_ARGUMENT);
}
END_TEST

/* What is told as the default is the default, and is itself accepted. */
START_TEST(options_default_is_accepted)
{
	options_init(&options);
	for (uint32_t i = 0; i < OPTION_COUNT; i++) {
		struct qret_option_info info = info_of(i);
		char before[256];

		strcpy(before, get(info.name));
		ck_assert_str_eq(before, info.default_value);
		ck_assert_msg(set(info.name, info.default_value) == QRET_DONE, "%s", info.name);
		ck_assert(!clamped);
		ck_assert_str_eq(get(info.name), before);
	}
	options_free(&options);
}
END_TEST

/* Both ends of each range are in it, and one step further is refused, or raised by a floor. */
START_TEST(options_number_ranges)
{
	options_init(&options);
	for (uint32_t i = 0; i < OPTION_COUNT; i++) {
		struct qret_option_info info = info_of(i);
		char least[32], most[32], beyond[40];
		bool floor = strcmp(info.name, "partition_cleanup_days") == 0 ||
		             strcmp(info.name, "metrics_retention_days") == 0;

		if (strcmp(info.type, "int") != 0)
			continue;
		ck_assert_int_eq(sscanf(info.range, "%31s .. %31s", least, most), 2);
		ck_assert_int_eq(set(info.name, least), QRET_DONE);
		ck_assert_str_eq(get(info.name), least);
		ck_assert_int_eq(set(info.name, most), QRET_DONE);
		ck_assert_str_eq(get(info.name), most);
		if (strcmp(most, "9223372036854775807") != 0) {
			snprintf(beyond, sizeof(beyond), "%lld", atoll(most) + 1);
			ck_assert_msg(set(info.name, beyond) == QRET_ERR_OPTION, "%s", info.name);
			snprintf(beyond, sizeof(beyond), "%lld", atoll(least) - 1);
			ck_assert_msg(set(info.name, beyond) ==
			                      (floor ? QRET_DONE : QRET_ERR_OPTION),
			              "%s", info.name);
			ck_assert_int_eq(clamped, floor);
		}
		ck_assert_str_eq(get(info.name), floor ? least : most);
	}
	options_free(&options);
}
END_TEST

START_TEST(options_number_syntax)
{
	static const char *const refused[] = {
		"",
		" ",
		"5 ",
		" 5",
		"+5",
		"5s",
		"5.0",
		"0x10",
		"1e3",
		"five",
		"NaN",
		"inf",
		"--5",
		"-",
		"5,0",
		"18446744073709551617",
		"9223372036854775808",
		"-9223372036854775809",
		"99999999999999999999999999",
	};

	options_init(&options);
	for (size_t i = 0; i < COUNT_OF(refused); i++) {
		ck_assert_msg(set("interval_ms", refused[i]) == QRET_ERR_OPTION, "\"%s\"",
		              refused[i]);
		ck_assert_int_eq(options.number[OPTION_INTERVAL_MS], 5000);
	}
	ck_assert_int_eq(set("gate_key", "-9223372036854775807"), QRET_DONE);
	ck_assert_int_eq(option_number(&options, OPTION_GATE_KEY), -9223372036854775807);
	ck_assert_int_eq(set("interval_ms", "007"), QRET_DONE);
	ck_assert_str_eq(get("interval_ms"), "7");
	options_free(&options);
}
END_TEST

START_TEST(options_bool_words)
{
	static const char *const yes[] = { "true", "1", "yes", "on", "TRUE", "Yes", "ON" };
	static const char *const no[] = { "false", "0", "no", "off", "False", "NO" };
	static const char *const neither[] = { "", "2", "y", "t", "tru", "true ", "enabled", "-1" };

	options_init(&options);
	for (size_t i = 0; i < COUNT_OF(no); i++) {
		ck_assert_int_eq(set("partition_cleanup", yes[i]), QRET_DONE);
		ck_assert_str_eq(get("partition_cleanup"), "true");
		ck_assert_int_eq(set("partition_cleanup", no[i]), QRET_DONE);
		ck_assert_str_eq(get("partition_cleanup"), "false");
	}
	for (size_t i = 0; i < COUNT_OF(neither); i++)
		ck_assert_msg(set("partition_cleanup", neither[i]) == QRET_ERR_OPTION, "\"%s\"",
		              neither[i]);
	options_free(&options);
}
END_TEST

START_TEST(options_choice)
{
	options_init(&options);
	ck_assert_int_eq(set("gate", "lease"), QRET_DONE);
	ck_assert_int_eq(option_number(&options, OPTION_GATE), GATE_LEASE);
	ck_assert_int_eq(set("engines", "log,event"), QRET_DONE);
	ck_assert_int_eq(option_number(&options, OPTION_ENGINES), ENGINES_BOTH);
	ck_assert_str_eq(get("engines"), "log,event");
	ck_assert_int_eq(set("engines", "event"), QRET_DONE);
	ck_assert_int_eq(option_number(&options, OPTION_ENGINES), ENGINES_EVENT);
	ck_assert_int_eq(set("step_version", "2"), QRET_DONE);
	ck_assert_int_eq(option_number(&options, OPTION_STEP_VERSION), STEP_VERSION_2);
	ck_assert_int_eq(set("gate", ""), QRET_ERR_OPTION);
	ck_assert_int_eq(set("gate", "sess"), QRET_ERR_OPTION);
	ck_assert_int_eq(set("gate", "session|lease"), QRET_ERR_OPTION);
	ck_assert_int_eq(set("gate", "Lease"), QRET_ERR_OPTION);
	ck_assert_str_eq(get("gate"), "lease");
	options_free(&options);
}
END_TEST

START_TEST(options_names)
{
	options_init(&options);
	ck_assert_int_eq(set("log_schema", "We\"ird.Sch\xc3\xa9ma"), QRET_DONE);
	ck_assert_str_eq(get("log_schema"), "We\"ird.Sch\xc3\xa9ma");
	ck_assert_int_eq(set("log_schema", ""), QRET_ERR_OPTION);
	ck_assert_int_eq(set("log_schema", "\xff\xfe"), QRET_ERR_OPTION);
	ck_assert_int_eq(set("log_schema",
	                     "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"),
	                 QRET_ERR_OPTION);
	ck_assert_str_eq(get("log_schema"), "We\"ird.Sch\xc3\xa9ma");
	ck_assert_int_eq(set("log_schema", NULL), QRET_DONE);
	ck_assert_str_eq(get("log_schema"), "queen");
	ck_assert_int_eq(set("grant_role", "app"), QRET_DONE);
	ck_assert_int_eq(set("grant_role", ""), QRET_DONE);
	ck_assert_int_eq(set("event_table", "public.\"Event\""), QRET_DONE);
	ck_assert_int_eq(set("event_table", "a.b.c"), QRET_ERR_OPTION);
	ck_assert_int_eq(set("event_table", ""), QRET_DONE);
	options_free(&options);
}
END_TEST

START_TEST(options_null_is_default)
{
	options_init(&options);
	for (uint32_t i = 0; i < OPTION_COUNT; i++) {
		struct qret_option_info info = info_of(i);

		if (strcmp(info.type, "text") == 0)
			ck_assert_int_eq(set(info.name, "other"), QRET_DONE);
		ck_assert_int_eq(set(info.name, NULL), QRET_DONE);
		ck_assert_str_eq(get(info.name), info.default_value);
	}
	options_free(&options);
}
END_TEST

START_TEST(options_refusal_says_option_value_range)
{
	options_init(&options);
	ck_assert_int_eq(set("batch_size", "0"), QRET_ERR_OPTION);
	ck_assert_contains(error.message, "batch_size");
	ck_assert_contains(error.message, "\"0\"");
	ck_assert_contains(error.message, "1 .. 1000000");
	ck_assert(!error.retryable);
	ck_assert_int_eq(set("no_such", "1"), QRET_ERR_OPTION);
	ck_assert_contains(error.message, "no_such");
	options_free(&options);
}
END_TEST

/* However long or broken the value, the range is still told, in valid UTF-8. */
START_TEST(options_refusal_of_long_value)
{
	char value[2000];

	options_init(&options);
	memset(value, '7', sizeof(value) - 1);
	value[sizeof(value) - 1] = '\0';
	ck_assert_int_eq(set("batch_size", value), QRET_ERR_OPTION);
	ck_assert_contains(error.message, "1 .. 1000000");
	for (size_t i = 0; i + 3 < sizeof(value); i += 3)
		memcpy(value + i, "\xe2\x82\xac", 3);
	ck_assert_int_eq(set("batch_size", value), QRET_ERR_OPTION);
	ck_assert_contains(error.message, "1 .. 1000000");
	ck_assert(unit_is_utf8(error.message));
	options_free(&options);
}
END_TEST

START_TEST(options_get_truncates)
{
	char value[8];

	options_init(&options);
	memset(value, 'x', sizeof(value));
	ck_assert_int_eq(options_get(&options, "interval_ms", value, 3), 4);
	ck_assert_str_eq(value, "50");
	ck_assert_int_eq(value[3], 'x');
	ck_assert_int_eq(options_get(&options, "interval_ms", value, 1), 4);
	ck_assert_str_eq(value, "");
	ck_assert_int_eq(options_get(&options, "interval_ms", NULL, 0), 4);
	ck_assert_int_eq(options_get(&options, "nope", value, sizeof(value)), -1);
	options_free(&options);
}
END_TEST

/* L: the two floors clamp, everything else is refused. */
START_TEST(options_floor_clamps)
{
	static const char *const low[] = { "0", "-1", "-2147483648" };

	options_init(&options);
	for (size_t i = 0; i < COUNT_OF(low); i++) {
		ck_assert_int_eq(set("partition_cleanup_days", low[i]), QRET_DONE);
		ck_assert(clamped);
		ck_assert_str_eq(get("partition_cleanup_days"), "1");
	}
	ck_assert_int_eq(set("partition_cleanup_days", "1"), QRET_DONE);
	ck_assert(!clamped);
	ck_assert_int_eq(set("partition_cleanup_days", "2147483648"), QRET_ERR_OPTION);
	ck_assert_int_eq(set("partition_cleanup_days", "x"), QRET_ERR_OPTION);
	ck_assert(!clamped);
	options_free(&options);
}
END_TEST

static void clear_environment(void)
{
	for (uint32_t i = 0; i < OPTION_COUNT; i++) {
		struct qret_option_info info = info_of(i);

		if (info.env[0] != '\0')
			unsetenv(info.env);
	}
}

START_TEST(options_environment_units)
{
	bool raised[OPTION_COUNT];

	clear_environment();
	options_init(&options);
	setenv("RETENTION_INTERVAL", "250", 1);
	setenv("RELAY_PRUNE_SECONDS", "7", 1);
	setenv("RELAY_PRUNE", "off", 1);
	setenv("RETENTION_DAYS", "0", 1);
	setenv("QUEEN_PARTITION_CLEANUP_ENABLED", "no", 1);
	setenv("RETENTION_BATCH_SIZE", "", 1);
	ck_assert_int_eq(options_load_env(&options, raised, &error), QRET_DONE);
	ck_assert_str_eq(get("interval_ms"), "250");
	ck_assert_str_eq(get("event_prune_interval_ms"), "7000");
	ck_assert_str_eq(get("event_prune"), "false");
	ck_assert_str_eq(get("event_retention_days"), "0");
	ck_assert_str_eq(get("partition_cleanup"), "false");
	ck_assert_str_eq(get("batch_size"), "1000");
	clear_environment();
	options_free(&options);
}
END_TEST

START_TEST(options_environment_all_or_nothing)
{
	bool raised[OPTION_COUNT];

	clear_environment();
	options_init(&options);
	setenv("RETENTION_INTERVAL", "250", 1);
	setenv("RELAY_PRUNE_SECONDS", "seven", 1);
	ck_assert_int_eq(options_load_env(&options, raised, &error), QRET_ERR_OPTION);
	ck_assert_contains(error.message, "RELAY_PRUNE_SECONDS");
	ck_assert_contains(error.message, "seven");
	ck_assert_str_eq(get("interval_ms"), "5000");
	clear_environment();
	options_free(&options);
}
END_TEST

/* Seconds that no longer fit as milliseconds must not wrap into a small number. */
START_TEST(options_environment_scale_overflow)
{
	static const char *const huge[] = { "9223372036854775807", "9223372036854776",
		                            "18446744073709552" };
	bool raised[OPTION_COUNT];

	clear_environment();
	for (size_t i = 0; i < COUNT_OF(huge); i++) {
		options_init(&options);
		setenv("RELAY_PRUNE_SECONDS", huge[i], 1);
		ck_assert_int_eq(options_load_env(&options, raised, &error), QRET_ERR_OPTION);
		ck_assert_str_eq(get("event_prune_interval_ms"), "60000");
		options_free(&options);
	}
	clear_environment();
}
END_TEST

START_TEST(options_environment_floor)
{
	bool raised[OPTION_COUNT];

	clear_environment();
	options_init(&options);
	setenv("METRICS_RETENTION_DAYS", "0", 1);
	ck_assert_int_eq(options_load_env(&options, raised, &error), QRET_DONE);
	ck_assert(raised[OPTION_METRICS_RETENTION_DAYS]);
	ck_assert(!raised[OPTION_PARTITION_CLEANUP_DAYS]);
	ck_assert_str_eq(get("metrics_retention_days"), "1");
	clear_environment();
	ck_assert_int_eq(options_load_env(&options, raised, &error), QRET_DONE);
	ck_assert(!raised[OPTION_METRICS_RETENTION_DAYS]);
	options_free(&options);
}
END_TEST

int main(void)
{
	const TTest *tests[] = { options_table_is_complete,
		                 options_default_is_accepted,
		                 options_number_ranges,
		                 options_number_syntax,
		                 options_bool_words,
		                 options_choice,
		                 options_names,
		                 options_null_is_default,
		                 options_refusal_says_option_value_range,
		                 options_refusal_of_long_value,
		                 options_get_truncates,
		                 options_floor_clamps,
		                 options_environment_units,
		                 options_environment_all_or_nothing,
		                 options_environment_scale_overflow,
		                 options_environment_floor,
		                 NULL };

	return unit_run("options", tests);
}
