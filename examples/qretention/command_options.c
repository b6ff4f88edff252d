/* SPDX-License-Identifier: MIT */
/* qretention options: every option with its value here and now. Needs no server. */
#include "driver.h"
#include "text.h"

#include <stdlib.h>
#include <string.h>

static int is_selected(const struct argument_list *words, const char *name)
{
	for (size_t i = 0; i < words->count; i++)
		if (strcmp(words->items[i], name) == 0)
			return 1;
	return words->count == 0;
}

static int is_option(const char *name)
{
	struct qret_option_info info = { .size = sizeof(info) };

	for (uint32_t i = 0; qret_option_get_info(i, &info) == QRET_DONE; i++)
		if (strcmp(info.name, name) == 0)
			return 1;
	return 0;
}

static void print_option(const struct qret_option_info *info, const char *value)
{
	char text[512];
	int column = printf("%s = %s", info->name, value);

	if (strcmp(value, info->default_value) != 0)
		column += printf("%s(default %s)", column > 40 ? "\n    " : "  ",
		                 info->default_value[0] ? info->default_value : "none");
	putchar('\n');
	text_wrap(stdout, info->help, 4, 0);
	snprintf(text, sizeof(text), "%s%s%s%s%s", info->type, info->range[0] ? ", " : "",
	         info->range, info->env[0] ? "; environment " : "", info->env);
	text_wrap(stdout, text, 4, 0);
}

static void print_option_json(const struct qret_option_info *info, const char *value)
{
	struct json json;

	output_json_begin(&json, "options");
	json_text(&json, "name", info->name);
	json_text(&json, "value", value);
	json_text(&json, "default", info->default_value);
	json_text(&json, "type", info->type);
	json_text(&json, "range", info->range);
	json_text(&json, "environment", info->env[0] ? info->env : NULL);
	json_text(&json, "help", info->help);
	json_end(&json);
}

static int run_options(struct driver *driver, const void *settings,
                       const struct argument_list *words)
{
	struct qret_option_info info = { .size = sizeof(info) };

	(void)settings;
	for (size_t i = 0; i < words->count; i++)
		if (!is_option(words->items[i]))
			return usage_error(
				"options",
				"there is no option \"%.64s\"; `qretention options` lists all",
				words->items[i]);
	for (uint32_t i = 0; qret_option_get_info(i, &info) == QRET_DONE; i++) {
		char *value;

		if (!is_selected(words, info.name))
			continue;
		value = driver_get(driver, info.name);
		if (value == NULL)
			return EXIT_TROUBLE;
		if (driver->settings.json)
			print_option_json(&info, value);
		else
			print_option(&info, value);
		free(value);
	}
	return outcome_exit_code(QRET_DONE);
}

const struct command command_options = {
	.name = "options",
	.words = "[NAME...]",
	.summary = "list the library's options with their values",
	.description =
		"Lists each option with its value as the environment and --set make it, its range, "
		"and the name of its environment variable. Needs no server.",
	.arguments = no_arguments,
	.most_words = SIZE_MAX,
	.unconnected = 1,
	.run = run_options,
};
