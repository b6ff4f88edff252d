/* SPDX-License-Identifier: MIT */
/* Any value for any option, by the setter and by the environment: accepted ones read back, refused ones change nothing. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "options.h"
#include "qretention.h"

static void check(const struct options *options, const char *name)
{
	char value[512];
	int64_t length = options_get(options, name, value, sizeof(value));
	struct options again;
	struct error error;
	bool clamped;

	/* What an option says of itself is itself accepted, and means the same. */
	FUZZ_REQUIRE(length >= 0 && (size_t)length < sizeof(value));
	options_init(&again);
	FUZZ_REQUIRE(options_set(&again, name, value, &clamped, &error) == QRET_DONE && !clamped);
	FUZZ_REQUIRE(memcmp(again.number, options->number, sizeof(again.number)) == 0);
	options_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum option option = size == 0 ? 0 : (enum option)(data[0] % OPTION_COUNT);
	struct qret_option_info info = { .size = sizeof(info) };
	struct options options, before;
	bool clamped, raised[OPTION_COUNT];
	struct error error;
	char *value = fuzz_text(data, size, 1);

	options_init(&options);
	before = options;
	if (options_set(&options, option_name(option), value, &clamped, &error) == QRET_DONE) {
		check(&options, option_name(option));
	} else {
		FUZZ_REQUIRE(memcmp(&before, &options, sizeof(options)) == 0);
		FUZZ_REQUIRE(strstr(error.message, option_name(option)) != NULL);
		FUZZ_REQUIRE(fuzz_is_utf8(error.message) || !fuzz_is_utf8(value));
	}
	options_free(&options);
	options_init(&options);
	qret_option_get_info(option, &info);
	if (info.env[0] != '\0') {
		setenv(info.env, value, 1);
		if (options_load_env(&options, raised, &error) == QRET_DONE)
			check(&options, option_name(option));
		unsetenv(info.env);
	}
	options_free(&options);
	free(value);
	return 0;
}
