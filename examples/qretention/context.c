/* SPDX-License-Identifier: MIT */
/* The driver's one context: options from the environment and --set, log lines, connection. */
#include "driver.h"

#include <stdlib.h>
#include <string.h>

/* Splits NAME=VALUE and sets it. */
static int set_pair(struct driver *driver, const char *pair)
{
	const char *equals = strchr(pair, '=');
	char *name;
	int rc;

	if (equals == NULL || equals == pair)
		return usage_error(
			NULL,
			"--set takes NAME=VALUE, not \"%.64s\"; `qretention options` lists the "
			"names",
			pair);
	name = strndup(pair, (size_t)(equals - pair));
	if (name == NULL)
		return EXIT_TROUBLE;
	rc = driver_set(driver, name, equals + 1);
	free(name);
	return rc;
}

static int apply_options(struct driver *driver)
{
	int rc;

	if (!driver->settings.ignore_environment) {
		rc = qret_load_env(driver->ctx);
		if (rc < 0)
			return failure_report_last(driver, "options", rc);
	}
	for (size_t i = 0; i < driver->settings.sets.count; i++) {
		rc = set_pair(driver, driver->settings.sets.items[i]);
		if (rc != 0)
			return rc;
	}
	return 0;
}

int driver_open(struct driver *driver, int unconnected)
{
	int rc = qret_ctx_new(&driver->ctx);

	if (rc != QRET_DONE)
		return failure_report_last(driver, "open", rc);
	log_lines_attach(driver);
	rc = apply_options(driver);
	if (rc != 0 || unconnected)
		return rc;
	rc = qret_connect(driver->ctx, driver->settings.dsn);
	if (rc != QRET_DONE)
		return failure_report_last(driver, "connect", rc);
	stop_on_signals(driver->ctx);
	return 0;
}

void driver_close(struct driver *driver)
{
	stop_forget();
	qret_ctx_free(driver->ctx);
	driver->ctx = NULL;
}

int driver_set(struct driver *driver, const char *name, const char *value)
{
	int rc = qret_set_option(driver->ctx, name, value);

	return rc == QRET_DONE ? 0 : failure_report_last(driver, "options", rc);
}

int driver_set_integer(struct driver *driver, const char *name, int64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%lld", (long long)value);
	return driver_set(driver, name, text);
}

int driver_set_unless_given(struct driver *driver, const char *name, const char *value)
{
	size_t length = strlen(name);

	for (size_t i = 0; i < driver->settings.sets.count; i++) {
		const char *pair = driver->settings.sets.items[i];

		if (strncmp(pair, name, length) == 0 && pair[length] == '=')
			return 0;
	}
	return driver_set(driver, name, value);
}

char *driver_get(struct driver *driver, const char *name)
{
	size_t length = 0;
	char *value;

	if (qret_get_option(driver->ctx, name, NULL, 0, &length) != QRET_DONE)
		return NULL;
	value = malloc(length + 1);
	if (value != NULL)
		qret_get_option(driver->ctx, name, value, length + 1, NULL);
	return value;
}
