/* SPDX-License-Identifier: MIT */
/*
 * A host of a release gone by: built with that release's header, run on the library of today. Its
 * structs end where that release's did, in front of bytes that nobody may touch.
 *
 *	past_host CONNINFO
 */
#include <qretention.h>

#include <stdio.h>
#include <string.h>

#define FENCE 0x5a

struct fenced_report {
	struct qret_cycle_report report;
	unsigned char fence[64];
};

static int fence_stands(const unsigned char *fence, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (fence[i] != FENCE)
			return 0;
	return 1;
}

/* Everything that is not final, or is not known to this host, is handled as its release said. */
static int cycle(struct qret_ctx *ctx, struct fenced_report *fenced)
{
	int rc = qret_cycle_begin(ctx);

	if (rc != QRET_DONE)
		return rc;
	do {
		rc = qret_cycle_process(ctx);
		if (rc == QRET_WAIT && qret_wait(ctx) != QRET_DONE)
			return QRET_ERR_STATE;
	} while (rc == QRET_MORE || rc == QRET_WAIT);
	memset(fenced, FENCE, sizeof(*fenced));
	fenced->report.size = sizeof(fenced->report);
	return qret_cycle_get_report(ctx, &fenced->report) == QRET_DONE ? rc : QRET_ERR_STATE;
}

static int step_first(struct qret_ctx *ctx, struct qret_step_result *result)
{
	struct qret_work_item item;
	struct qret_worklist *list = NULL;
	int rc = qret_worklist_build(ctx, &list);

	memset(&item, 0, sizeof(item));
	item.size = sizeof(item);
	if (rc == QRET_DONE)
		rc = qret_worklist_get(list, 0, &item);
	if (rc == QRET_DONE)
		rc = qret_step(ctx, QRET_PHASE_RETENTION, &item, result);
	qret_worklist_free(list);
	return rc;
}

int main(int argc, char **argv)
{
	struct qret_step_result result = { .size = sizeof(result) };
	struct qret_ctx *ctx = NULL;
	struct fenced_report fenced;
	int rc;

	if (argc < 2 || qret_version_number() < QRET_VERSION_NUMBER ||
	    qret_ctx_new(&ctx) != QRET_DONE)
		return 10;
	rc = qret_connect(ctx, argv[1]);
	if (rc == QRET_DONE)
		rc = qret_set_option(ctx, "batch_size", "5");
	if (rc == QRET_DONE)
		rc = qret_set_option(ctx, "work_list", "scan");
	if (rc == QRET_DONE)
		rc = step_first(ctx, &result);
	if (rc == QRET_DONE)
		rc = cycle(ctx, &fenced);
	if (rc != QRET_DONE) {
		fprintf(stderr, "%d: %s (%s)\n", rc, qret_error_message(ctx), qret_error_hint(ctx));
		qret_ctx_free(ctx);
		return 11;
	}
	printf("compiled=%s running=%s stepped=%lld swept=%lld fence=%d size=%u\n", QRET_VERSION,
	       qret_version(), (long long)result.rows_deleted,
	       (long long)fenced.report.segments_deleted,
	       fence_stands(fenced.fence, sizeof(fenced.fence)), (unsigned)fenced.report.size);
	qret_ctx_free(ctx);
	return 0;
}
