/* SPDX-License-Identifier: MIT */
/* The parameters of client/settings.sql: what our statements run under. */
#ifndef QRET_LIB_SETTINGS_H
#define QRET_LIB_SETTINGS_H

#include "session.h"
#include "value.h"

/*
 * local: for the transaction; else for the session, which is then ours. The parameters own no
 * memory.
 */
void settings_parameters(struct parameters *parameters, const struct session_settings *settings,
                         bool local);

/* Whether a session that was set up under one can serve under the other. */
bool settings_equal(const struct session_settings *a, const struct session_settings *b);

#endif
