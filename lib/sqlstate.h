/* SPDX-License-Identifier: MIT */
/* One table from SQLSTATE to what it means for the caller and what the runner does about it. */
#ifndef QRET_LIB_SQLSTATE_H
#define QRET_LIB_SQLSTATE_H

enum sqlstate_action {
	SQLSTATE_RETRY,    /* the transaction may go through when sent again at once */
	SQLSTATE_SHRINK,   /* send again with a smaller batch, then back the item off */
	SQLSTATE_LOCKED,   /* somebody holds a lock: skip the item, come back later */
	SQLSTATE_ITEM,     /* this item is at fault: skip it, back it off, go on with the others */
	SQLSTATE_CYCLE,    /* nothing will work for now: end the cycle, try again later */
	SQLSTATE_PERMANENT /* somebody must mend something first: end the cycle */
};

struct sqlstate_rule {
	const char *prefix; /* a whole SQLSTATE or the beginning of one */
	int code;           /* QRET_ERR_... */
	enum sqlstate_action action;
	const char *hint; /* or "" */
};

/* The rule for a SQLSTATE; whole codes win over classes; never NULL. */
const struct sqlstate_rule *sqlstate_rule(const char *sqlstate);

/* SQLSTATEs that our own SQL raises. */
#define SQLSTATE_LATE_LOCK_LOST   "QR001"
#define SQLSTATE_FENCE_LOST       "QR002"
#define SQLSTATE_STREAMS_CHANGED  "QR003"
#define SQLSTATE_WRONG_ISOLATION  "QR004"
#define SQLSTATE_FUTURE_CUTOFF    "QR005"
#define SQLSTATE_SEEK_BELOW_BATCH "QR006"
#define SQLSTATE_LEASE_NOT_HELD   "QR007"

#endif
