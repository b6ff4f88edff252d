/* SPDX-License-Identifier: MIT */
/* Entries of an install list, one after the other on lane 0, which is open; blocking. */
#ifndef QRET_LIB_INSTALL_H
#define QRET_LIB_INSTALL_H

#include <stdint.h>

#include "options.h"
#include "template.h"
#include "value.h"

struct qret_ctx;
struct sql_entry;

/* One entry of a part whose functions are in the schema that this option names. */
int install_entry(struct qret_ctx *ctx, enum option schema, const struct sql_entry *entry,
                  const struct template_name *names);

/* Asks for one number. */
int install_number(struct qret_ctx *ctx, const char *text, const struct parameters *parameters,
                   int64_t *ret_number);

#endif
