/* SPDX-License-Identifier: MIT */
/* The smallest host that shows that the library was found, linked and works. */
#include <qretention.h>

#include <stdio.h>

int main(void)
{
	struct qret_ctx *ctx = NULL;
	int rc = qret_ctx_new(&ctx);

	if (rc == QRET_DONE)
		rc = qret_connect(ctx, "host=/nowhere dbname=none");
	if (rc == QRET_DONE)
		rc = qret_run_cycle(ctx, NULL);
	printf("%s %s\n", qret_version(),
	       rc == QRET_ERR_CONNECTION ? "works" : qret_error_message(ctx));
	qret_ctx_free(ctx);
	return rc != QRET_ERR_CONNECTION;
}
