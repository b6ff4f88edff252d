/* SPDX-License-Identifier: MIT */
/*
 * The detail of one failure: code, SQLSTATE, message, hint, whether trying again may help.
 * Reported once, to the caller; it never logs.
 */
#ifndef QRET_LIB_ERROR_H
#define QRET_LIB_ERROR_H

#include <stdbool.h>

struct error {
	int code; /* QRET_DONE: no failure recorded */
	bool retryable;
	char sqlstate[6];
	char message[512];
	char hint[256];
};

void error_clear(struct error *error);

/* Records a failure of our own and returns its code. hint may be NULL. */
int error_set(struct error *error, int code, bool retryable, const char *hint, const char *format,
              ...) __attribute__((format(printf, 5, 6)));

/*
 * Records what the server said; the SQLSTATE decides code and retryability, `hint` (may be NULL)
 * is the server's own.
 */
int error_set_server(struct error *error, const char *sqlstate, const char *message,
                     const char *hint);

/* Puts "context: " before the recorded message. */
void error_prefix(struct error *error, const char *context);

#endif
