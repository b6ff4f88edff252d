/* SPDX-License-Identifier: MIT */
#include "script_outbox.h"

#include <stdio.h>
#include <string.h>

char outbox_arms[4096];
const char *outbox_answer;
int outbox_answers;

const char *outbox_step(struct script_call *call)
{
	if (strcmp(call->statement, "event_prune_step") != 0)
		return NULL;
	snprintf(outbox_arms + strlen(outbox_arms), sizeof(outbox_arms) - strlen(outbox_arms),
	         "%s|", call->parameters);
	return outbox_answers-- > 0 ? outbox_answer : NULL;
}

void outbox_busy(void)
{
	world_set("event_prune_interval_ms", "60000");
	world_set("event_prune_max_defer_ms", "600000");
	ck_assert_int_eq(qret_set_busy(world.ctx, 1), QRET_DONE);
}

void outbox_begin(void)
{
	world_begin(0, 0);
	world_set("engines", "event");
	world_set("event_prune_interval_ms", "0");
	world.before = outbox_step;
	outbox_arms[0] = '\0';
	outbox_answers = 0;
}
