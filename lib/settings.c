/* SPDX-License-Identifier: MIT */
/* Binds the settings. As numbers, since the statement knows names and units. */
#include "settings.h"

void settings_parameters(struct parameters *parameters, const struct session_settings *settings,
                         bool local)
{
	parameter_bool(parameters, local);
	parameter_int8(parameters, settings->statement_timeout_ms);
	parameter_int8(parameters, settings->lock_timeout_ms);
	parameter_int8(parameters, settings->late_lock_ms);
	parameter_int8(parameters, settings->idle_limit_ms);
}

bool settings_equal(const struct session_settings *a, const struct session_settings *b)
{
	return a->statement_timeout_ms == b->statement_timeout_ms &&
	       a->lock_timeout_ms == b->lock_timeout_ms && a->late_lock_ms == b->late_lock_ms &&
	       a->idle_limit_ms == b->idle_limit_ms && a->wrapped == b->wrapped;
}
