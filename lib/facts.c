/* SPDX-License-Identifier: MIT */
/* Reads the answer of client/facts.sql. */
#include "facts.h"

#include "qretention.h"
#include "value.h"

void facts_read(struct facts *facts, const struct pg_result *result)
{
	facts->clock_us = result_timestamp(result, 0, 0);
	for (int fact = 0; fact < FACT_COUNT; fact++)
		facts->is[fact] = result_bool(result, 0, fact + 1);
	facts->read_us = qret_now_us();
	facts->known = true;
}
