/* SPDX-License-Identifier: MIT */
/* Pages of work: partitions with their cutoffs, all from one reading of the server's clock. */
#ifndef QRET_LIB_WORKLIST_H
#define QRET_LIB_WORKLIST_H

#include <stdbool.h>
#include <stdint.h>

#include "value.h"
#include "work.h"

#define PAGE_ITEMS 1000

struct qret_ctx;

struct pager {
	struct work *works; /* PAGE_ITEMS of them */
	uint32_t count;
	bool last; /* no page follows */
	bool has_after;
	uint8_t after[16]; /* the last partition of the page before */
	int64_t read_us;   /* when the page was read, on our clock; 0: none was */
	uint8_t *ids;      /* the page's ids as an array, for reading it again */
};

int pager_init(struct pager *pager);
void pager_free(struct pager *pager);
void pager_begin(struct pager *pager);

/* The next page. */
const char *pager_bind(struct qret_ctx *ctx, struct parameters *parameters);
void pager_read(struct qret_ctx *ctx, const struct pg_result *result);

/* The same page again by id at the same clock: policies as they are now. */
const char *pager_refresh_bind(struct qret_ctx *ctx, struct parameters *parameters);
void pager_refresh_read(struct qret_ctx *ctx, const struct pg_result *result);

/* Whether the page is too old to act on. */
bool pager_stale(const struct pager *pager);

/* Whether this partition is in the page with something to do. */
bool pager_stepped(const struct pager *pager, const uint8_t *id);

struct qret_worklist;

/* The host's own view, filled page by page. */
struct qret_worklist *worklist_new(void);
/* unsettled: items without any cutoff are left out. QRET_DONE, or QRET_ERR_NOMEM. */
int worklist_append(struct qret_worklist *list, const struct pager *pager, int64_t limit,
                    bool unsettled);

bool worklist_full(const struct qret_worklist *list, int64_t limit);
void worklist_set_clock(struct qret_worklist *list, int64_t clock_us);

#endif
