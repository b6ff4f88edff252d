/* SPDX-License-Identifier: MIT */
/*
 * libqretention: retention for message brokers and outboxes kept in PostgreSQL.
 *
 * A context holds options, callbacks, one or more connections and at most one cycle. A host drives
 * it: blocking (qret_run_cycle, qret_wait) or from its own event loop (qret_cycle_begin,
 * qret_cycle_process, qret_poll_fds, qret_deadline_us).
 *
 * Conventions
 *   - Calls return 0 when done, a positive outcome, or a negative error. Only QRET_MORE and
 *     QRET_WAIT are not final. An unknown positive value is a final outcome, an unknown negative
 *     one an error: later releases may add some.
 *   - A call that returns int and takes a context may return QRET_ERR_ARGUMENT (the context is
 *     NULL), QRET_ERR_REENTRANT and QRET_ERR_FORKED; its other results are named where it is
 *     declared. "A server error" there is one of QRET_ERR_NOMEM, QRET_ERR_OPTION (a session gate
 *     behind a pooler, a password file that others may read), QRET_ERR_CONNECTION,
 *     QRET_ERR_TIMEOUT, QRET_ERR_SQL, QRET_ERR_SCHEMA and QRET_ERR_PRIVILEGE.
 *   - Outputs come last, are named ret_, and are written only when the call returns QRET_DONE,
 *     unless the call says otherwise. Nothing returned is passed to free().
 *   - A transparent struct begins with its size, set by the caller to its own sizeof. Fields are
 *     only ever appended. No byte past the caller's size is read or written. What an output has
 *     beyond the library's struct is zeroed; what an input has there must be zero. A size below
 *     that of the struct's first version, or above 4096, is QRET_ERR_ARGUMENT.
 *   - _us: int64 microseconds (wall clock since 1970-01-01 UTC as the server says; deadlines on
 *     the clock of qret_now_us, INT64_MAX meaning none). _ms: int64 milliseconds.
 *   - A context belongs to one thread at a time; different contexts are independent. From any
 *     thread: qret_stop, qret_resume, qret_set_busy. From a signal handler: qret_stop alone.
 *   - Blocking, each within the time limits: qret_schema_install, qret_schema_version,
 *     qret_worklist_build, qret_step, qret_gate_take, qret_gate_release, qret_run_cycle and
 *     qret_wait. No other call blocks, but for the look-ups of names, Kerberos and LDAP that libpq
 *     makes in qret_cycle_process while it connects.
 *   - Callbacks run only inside a call of the host, on its thread. They must return (no exception,
 *     longjmp or panic), and must not call back into the same context (QRET_ERR_REENTRANT), except
 *     qret_stop, qret_set_busy and the accessors of the last failure.
 *   - After fork() the child's calls that do I/O or change state return QRET_ERR_FORKED.
 */
#ifndef QRETENTION_H
#define QRETENTION_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define QRET_API __attribute__((visibility("default")))
#else
#define QRET_API
#endif

/* ---- Version -------------------------------------------------------------------------------- */

#define QRET_VERSION_MAJOR 0
#define QRET_VERSION_MINOR 1
#define QRET_VERSION_PATCH 0
#define QRET_VERSION_NUMBER \
	(QRET_VERSION_MAJOR * 10000 + QRET_VERSION_MINOR * 100 + QRET_VERSION_PATCH)
#define QRET_VERSION "0.1.0"

/* clang-format off: tables of names, values and fields keep their columns */

/* ---- Outcomes and errors -------------------------------------------------------------------- */

#define QRET_DONE    0 /* finished */
#define QRET_MORE    1 /* progress was made; call again (the host may serve others first) */
#define QRET_WAIT    2 /* call again when a descriptor is ready or the deadline passed */
#define QRET_BUSY    3 /* another instance leads, or the cluster's next cycle is not due; skipped */
#define QRET_STOPPED 4 /* qret_stop was called */
#define QRET_PARTIAL 5 /* finished; some items failed and were skipped */
#define QRET_PAUSED  6 /* an operator paused every rule that would run */
#define QRET_STANDBY 7 /* the server is read-only; nothing was tried */
#define QRET_BUDGET  8 /* the cycle's time or row budget ended it between batches; work is left */

#define QRET_ERR_NOMEM (-1) /* out of memory */
#define QRET_ERR_ARGUMENT \
	(-2) /* bad argument: NULL, struct size, phase, a cutoff in the server's future */
#define QRET_ERR_STATE       (-3) /* call out of order: cycle in progress, no connection, no gate */
#define QRET_ERR_REENTRANT   (-4) /* called from inside a callback of the same context */
#define QRET_ERR_FORKED      (-5) /* used in a child process */
#define QRET_ERR_OPTION      (-6) /* unknown option, or a value refused (conninfo included) */
#define QRET_ERR_CONNECTION  (-7) /* cannot connect, or the connection was lost */
#define QRET_ERR_TIMEOUT     (-8) /* a time limit passed (connect, statement) */
#define QRET_ERR_SQL         (-9) /* the server refused a statement for another reason */
#define QRET_ERR_SCHEMA      (-10) /* an object of the contract is missing or of another version */
#define QRET_ERR_PRIVILEGE   (-11) /* the role lacks a grant (the message names it) */
#define QRET_ERR_LEADER_LOST (-12) /* the gate was lost in mid-cycle; nothing more was deleted */

/* ---- Constants ------------------------------------------------------------------------------ */

#define QRET_PHASE_RETENTION         1 /* rules 1 and 2: segments, per partition */
#define QRET_PHASE_TXNS_PURGE        2 /* hash sidecar, per partition */
#define QRET_PHASE_MAX_WAIT          3 /* max-wait eviction, per partition */
#define QRET_PHASE_PARTITION_CLEANUP 4 /* empty partitions, batched */
#define QRET_PHASE_METRICS_PURGE     5 /* metrics tables, batched */
#define QRET_PHASE_EVENT_PRUNE       6 /* outbox events, batched */

#define QRET_LOG_NONE  0
#define QRET_LOG_ERROR 1
#define QRET_LOG_WARN  2
#define QRET_LOG_INFO  3
#define QRET_LOG_DEBUG 4

#define QRET_METRIC_COUNTER   1
#define QRET_METRIC_GAUGE     2
#define QRET_METRIC_HISTOGRAM 3

#define QRET_POLL_READ  1
#define QRET_POLL_WRITE 2

#define QRET_CUTOFF_OFF INT64_MIN /* switches a rule off: sent as NULL, never as a timestamp */

/* ---- Structs -------------------------------------------------------------------------------- */

struct qret_ctx;      /* opaque */
struct qret_worklist; /* opaque */
struct pg_conn;       /* libpq's PGconn */

/* One partition of the work list with its cutoffs. Since 0.1.0. */
struct qret_work_item {
	uint32_t size, flags;     /* flags: 0 */
	uint8_t partition_id[16]; /* big-endian UUID, as the server sends it */
	uint8_t queue_id[16];
	int64_t all_cutoff_us;       /* rule 1: older goes, consumed or not */
	int64_t completed_cutoff_us; /* rule 2: older goes once every group has consumed it */
	int64_t txns_cutoff_us;      /* sidecar purge */
	int64_t max_wait_cutoff_us;  /* eviction */
};

/* What one step did. Since 0.1.0. */
struct qret_step_result {
	uint32_t size;
	int32_t done;         /* 1: nothing deletable is left for this item and phase */
	int64_t rows_deleted; /* segments, sidecar rows, partitions, metric rows, events and deliveries */
	int64_t messages_deleted; /* messages of the segments, or events; 0 elsewhere */
	int64_t watermark;        /* new log_start or txns_start; -1 where the phase has none */
	int64_t elapsed_us;       /* as the server measured the statement */
};

/* What a cycle did. The first 144 bytes are the least that is accepted. Since 0.1.0. */
struct qret_cycle_report {
	uint32_t size;
	int32_t outcome;          /* equals the call's return; QRET_MORE in mid-cycle */
	int64_t clock_us;         /* the cycle's one server clock; 0 before it is known */
	int64_t queues;           /* queues with a deletion */
	int64_t partitions;       /* partitions stepped, counted once a phase */
	int64_t steps;            /* step calls */
	int64_t segments_deleted; /* without the evicted ones */
	int64_t messages_deleted; /* of deleted and evicted segments */
	int64_t txns_purged;      /* sidecar rows */
	int64_t max_wait_evicted; /* segments */
	int64_t partitions_deleted;
	int64_t metrics_purged; /* rows of the metrics tables */
	int64_t events_deleted;
	int64_t deliveries_deleted;
	int64_t items_failed; /* given up: a step failed, a lock was missed, or backed off from before */
	int64_t items_locked; /* those of them that missed a lock; events, empty partitions held */
	int64_t items_pinned; /* due by age, held by a slow group */
	int64_t round_trips;  /* times the library waited for an answer */
	int64_t elapsed_us;
	int64_t events_succeeded, events_settled, events_own_window,
		events_default_window; /* per arm */
	int64_t events_oversize;       /* events that lost deliveries a chunk at a time */
	int64_t rows_poison;           /* events with an unusable time, left alone */
	int64_t consecutive_failures; /* cycles in a row that ended in an error, this one included */
	int64_t last_success_us; /* wall clock of the server at the last good cycle; 0: none yet */
	/* how far past its cutoff the oldest row left is, as of the last cycle that ended well; 0: none */
	int64_t oldest_overdue_us;
};

/* A descriptor to poll. Frozen: it travels in arrays. Since 0.1.0. */
struct qret_poll_fd {
	int32_t fd;
	int32_t events; /* QRET_POLL_READ | QRET_POLL_WRITE */
};

/* One log line. Valid only inside the callback. Since 0.1.0. */
struct qret_log_record {
	uint32_t size; /* the library's */
	int32_t level;
	const char *event;  /* stable id, e.g. "swept", "idle", "cycle_error" */
	const char *text;   /* one logfmt line, escaped, valid UTF-8, no newline */
	int64_t suppressed; /* equal records swallowed by the rate limit before this one */
};

/* One metric sample. Valid only inside the callback. Since 0.1.0. */
struct qret_metric {
	uint32_t size; /* the library's in callbacks, the caller's in qret_metric_get_info */
	int32_t kind;
	const char *name, *unit, *help; /* Prometheus naming */
	const char *phase;              /* label, or "" */
	double value; /* counters: increment since the last call for that series */
};

/* One row of the option table. The strings are static. Since 0.1.0. */
struct qret_option_info {
	uint32_t size, flags;                            /* flags: 0 */
	const char *name, *env;                          /* env: "" if none */
	const char *type, *default_value, *range, *help; /* type: bool, int, enum, text */
};

/* clang-format on */

typedef void (*qret_log_fn)(void *user_data, const struct qret_log_record *record);
typedef void (*qret_metric_fn)(void *user_data, const struct qret_metric *metric);
typedef void (*qret_free_fn)(void *user_data);

/* ---- Without a context: any thread, any time, never blocking -------------------------------- */

/* The library's version as text, e.g. "0.1.0". Static. Since 0.1.0. */
QRET_API const char *qret_version(void);

/*
 * The library's version, major * 10000 + minor * 100 + patch: compare with QRET_VERSION_NUMBER.
 * Since 0.1.0.
 */
QRET_API uint32_t qret_version_number(void);

/* CLOCK_MONOTONIC in microseconds: the clock of every deadline. Since 0.1.0. */
QRET_API int64_t qret_now_us(void);

/* A static English phrase for an outcome or error, never NULL. Since 0.1.0. */
QRET_API const char *qret_strerror(int code);

/*
 * Row `index` of the option table. QRET_DONE, or QRET_ERR_ARGUMENT: past the last row, or a bad
 * size. Since 0.1.0.
 */
QRET_API int qret_option_get_info(uint32_t index, struct qret_option_info *ret_info);

/*
 * Series `index` of all that the metrics callback can ever be given, with value 0, so that a
 * host can register them beforehand. QRET_DONE, or QRET_ERR_ARGUMENT: past the last, or a bad
 * size. Since 0.1.0.
 */
QRET_API int qret_metric_get_info(uint32_t index, struct qret_metric *ret_metric);

/* ---- Context -------------------------------------------------------------------------------- */

/*
 * Creates a context with default options. No I/O. The caller frees it with qret_ctx_free.
 * Returns QRET_DONE, QRET_ERR_ARGUMENT or QRET_ERR_NOMEM (also when no descriptor can be had).
 * Since 0.1.0.
 */
QRET_API int qret_ctx_new(struct qret_ctx **ret_ctx);

/*
 * Frees the context: closes an owned connection without waiting, leaves a borrowed one to its
 * owner, runs each free_fn once and no other callback. NULL is fine; inside a callback nothing
 * happens. In mid-cycle the server ends what it was doing by itself. A gate that is held on a
 * borrowed connection stays with it: release or detach before. In a forked child nothing is sent.
 * Since 0.1.0.
 */
QRET_API void qret_ctx_free(struct qret_ctx *ctx);

/*
 * Sets one option from text; value NULL restores the default. The value is copied.
 * QRET_DONE; QRET_ERR_OPTION for an unknown name or a refused value, with a message that names
 * option, value and range; QRET_ERR_STATE in mid-cycle or while the gate is held; QRET_ERR_ARGUMENT
 * (name is NULL); QRET_ERR_NOMEM. Does not block. Since 0.1.0.
 */
QRET_API int qret_set_option(struct qret_ctx *ctx, const char *name, const char *value);

/*
 * Copies an option's current value, terminated and if need be truncated, into ret_value
 * (capacity bytes; NULL with capacity 0 asks for the length alone). *ret_length, if not NULL,
 * gets the full length without the terminator. QRET_DONE; QRET_ERR_OPTION for an unknown name;
 * QRET_ERR_ARGUMENT (name is NULL, or ret_value with a capacity). Since 0.1.0.
 */
QRET_API int qret_get_option(struct qret_ctx *ctx, const char *name, char *ret_value,
                             size_t capacity, size_t *ret_length);

/*
 * Reads every option that has an environment name from the process's environment: all or
 * nothing. An empty variable counts as unset. Not safe beside setenv in another thread.
 * QRET_DONE; QRET_ERR_OPTION if a value is refused, and then nothing has changed; QRET_ERR_STATE in
 * mid-cycle or while the gate is held. Since 0.1.0.
 */
QRET_API int qret_load_env(struct qret_ctx *ctx);

/*
 * Sets the log callback; records with level <= max_level are delivered, none with max_level 0 or
 * fn NULL. free_fn (may be NULL) runs exactly once on user_data: when the callback is replaced,
 * when the context is freed, or at once if this call fails. QRET_DONE, or QRET_ERR_ARGUMENT
 * (max_level is not a level). Since 0.1.0.
 */
QRET_API int qret_set_log(struct qret_ctx *ctx, int32_t max_level, qret_log_fn fn, void *user_data,
                          qret_free_fn free_fn);

/*
 * Sets the metrics callback: each series once at the end of each cycle, histograms once a step.
 * Ownership as in qret_set_log. QRET_DONE. Since 0.1.0.
 */
QRET_API int qret_set_metrics(struct qret_ctx *ctx, qret_metric_fn fn, void *user_data,
                              qret_free_fn free_fn);

/* ---- Connection: one of the two ------------------------------------------------------------- */

/*
 * Gives the context its own connections. conninfo is checked and copied; no I/O: they are opened
 * when needed and reopened, with back-off, when lost. NULL means "": libpq's environment.
 * QRET_DONE; QRET_ERR_OPTION if libpq cannot use it, or others may read its password file (the
 * message never repeats it); QRET_ERR_STATE in mid-cycle, while the gate is held, or when a
 * connection is attached; QRET_ERR_NOMEM. Since 0.1.0.
 */
QRET_API int qret_connect(struct qret_ctx *ctx, const char *conninfo);

/*
 * Borrows a connection of the host's: status OK, idle, not in pipeline mode. No I/O. The host
 * keeps ownership and may use it between cycles; after every final outcome it is as found, or
 * known tainted (qret_detach). Its notice hooks stay the host's. One lane. QRET_DONE;
 * QRET_ERR_ARGUMENT (conn is NULL); QRET_ERR_STATE if it is not open and idle, in mid-cycle, while
 * the gate is held, or when one is attached. Since 0.1.0.
 */
QRET_API int qret_attach(struct qret_ctx *ctx, struct pg_conn *conn);

/*
 * Gives a borrowed connection back. No I/O; allowed in mid-cycle, which ends the cycle.
 * *ret_tainted (may be NULL) is 1 if its state could not be confirmed: the host must close it.
 * QRET_DONE, or QRET_ERR_STATE if none is attached. Since 0.1.0.
 */
QRET_API int qret_detach(struct qret_ctx *ctx, int32_t *ret_tainted);

/* ---- Schema: blocking, within the time limits ----------------------------------------------- */

/*
 * Installs or upgrades one part: "broker" (the broker's own tables, where missing), "log" or
 * "event". Idempotent; every statement commits by itself under a lock timeout, with retries, so
 * it goes through under load. Functions that somebody else created are left alone. QRET_DONE;
 * QRET_STOPPED; QRET_ERR_ARGUMENT for an unknown part; QRET_ERR_STATE in mid-cycle, while the
 * gate is held, or without a connection to use; or a server error. Since 0.1.0.
 */
QRET_API int qret_schema_install(struct qret_ctx *ctx, const char *part);

/*
 * The installed version of a part; 0: not installed. Also serves as a ping. QRET_DONE;
 * QRET_STOPPED; QRET_ERR_ARGUMENT for an unknown part; QRET_ERR_STATE in mid-cycle or without a
 * connection to use; QRET_ERR_LEADER_LOST if the session that held the gate is gone; or a server
 * error. Since 0.1.0.
 */
QRET_API int qret_schema_version(struct qret_ctx *ctx, const char *part, int32_t *ret_version);

/* ---- Work list and single steps: blocking, within the time limits --------------------------- */

/*
 * Builds the list of partitions with their cutoffs, all from one reading of the server's clock:
 * with option work_list = due, or auto where the floors are installed, only those with something
 * to delete, else all; at most worklist_limit items. The list outlives the context and is freed
 * with qret_worklist_free. Needs no gate. QRET_DONE; QRET_STOPPED; QRET_ERR_ARGUMENT (ret_list is
 * NULL); QRET_ERR_STATE in mid-cycle or without a connection to use; QRET_ERR_LEADER_LOST if the
 * session that held the gate is gone; or a server error. Since 0.1.0.
 */
QRET_API int qret_worklist_build(struct qret_ctx *ctx, struct qret_worklist **ret_list);

/* Number of items; 0 for NULL. Since 0.1.0. */
QRET_API uint64_t qret_worklist_count(const struct qret_worklist *list);

/* The server clock that the cutoffs come from; 0 for NULL. Since 0.1.0. */
QRET_API int64_t qret_worklist_clock_us(const struct qret_worklist *list);

/*
 * Copies item `index`; set ret_item->size before. QRET_DONE, or QRET_ERR_ARGUMENT: past the last, a
 * bad size, or a list that is NULL. Since 0.1.0.
 */
QRET_API int qret_worklist_get(const struct qret_worklist *list, uint64_t index,
                               struct qret_work_item *ret_item);

/* Frees a list; NULL is fine. Until then any number of threads may read it. Since 0.1.0. */
QRET_API void qret_worklist_free(struct qret_worklist *list);

/*
 * One bounded step: one batch, one transaction. item is required for phases 1 to 3, and NULL for
 * phases 4 to 6, which use the server's now(). Steps are safe side by side, so no gate is needed
 * (except with gate = lease). *ret_result is written on QRET_DONE and QRET_PARTIAL (a lock was
 * missed: done is 0). Else QRET_STOPPED; QRET_STANDBY; QRET_ERR_ARGUMENT (phase, item or size, or a
 * cutoff later than the server's now()); QRET_ERR_STATE in mid-cycle, without a connection to use,
 * or without the lease; QRET_ERR_LEADER_LOST if the lease was taken over, or the session that held
 * the gate is gone; or a server error. Since 0.1.0.
 */
QRET_API int qret_step(struct qret_ctx *ctx, int32_t phase, const struct qret_work_item *item,
                       struct qret_step_result *ret_result);

/*
 * Takes the gate for a host that steps by hand; a cycle run meanwhile uses and keeps it.
 * QRET_DONE; QRET_BUSY; QRET_PAUSED; QRET_STANDBY; QRET_STOPPED; QRET_ERR_STATE if it is held
 * already, in mid-cycle, or without a connection to use; or a server error. Since 0.1.0.
 */
QRET_API int qret_gate_take(struct qret_ctx *ctx);

/*
 * Releases it; works while stopped. QRET_DONE; QRET_ERR_STATE if it is not held, or in mid-cycle;
 * QRET_ERR_LEADER_LOST if the session that held it is gone; or a server error; after these
 * two it is not held either. Since 0.1.0.
 */
QRET_API int qret_gate_release(struct qret_ctx *ctx);

/* ---- A full cycle --------------------------------------------------------------------------- */

/*
 * Runs one cycle to its end: a loop over qret_cycle_begin, qret_cycle_process and poll(2). Blocks
 * within the time limits. *ret_report (may be NULL) is written on every return once the arguments
 * were accepted. QRET_DONE, QRET_BUSY, QRET_STOPPED, QRET_PARTIAL, QRET_PAUSED, QRET_STANDBY or
 * QRET_BUDGET; QRET_ERR_ARGUMENT (the report's size); QRET_ERR_STATE if a cycle is in progress or
 * there is no connection to use; QRET_ERR_LEADER_LOST; or a server error. Since 0.1.0.
 */
QRET_API int qret_run_cycle(struct qret_ctx *ctx, struct qret_cycle_report *ret_report);

/*
 * Begins a cycle; does no I/O and never blocks. QRET_DONE; QRET_STOPPED; QRET_ERR_STATE if one is
 * in progress or there is no connection to use; QRET_ERR_OPTION for a session gate behind a
 * pooler; QRET_ERR_NOMEM. Since 0.1.0.
 */
QRET_API int qret_cycle_begin(struct qret_ctx *ctx);

/*
 * Moves the cycle on without blocking. QRET_MORE: call again. QRET_WAIT: ask qret_poll_fds and
 * qret_deadline_us, sleep, call again. Anything else is final and ends the cycle: QRET_DONE,
 * QRET_BUSY, QRET_STOPPED, QRET_PARTIAL, QRET_PAUSED, QRET_STANDBY or QRET_BUDGET;
 * QRET_ERR_LEADER_LOST or a server error. QRET_ERR_STATE if no cycle is in progress, or
 * the borrowed connection is not idle. Since 0.1.0.
 */
QRET_API int qret_cycle_process(struct qret_ctx *ctx);

/*
 * The counts of the running cycle, or of the last one. QRET_DONE; QRET_ERR_ARGUMENT (the size);
 * QRET_ERR_STATE if there was none. Since 0.1.0.
 */
QRET_API int qret_cycle_get_report(struct qret_ctx *ctx, struct qret_cycle_report *ret_report);

/*
 * Writes min(capacity, total) descriptors to poll, *ret_count = total (at most parallelism + 2).
 * Level-triggered; ask again after every qret_cycle_process, since libpq may change its socket.
 * The wake descriptor of qret_stop is always listed; after a stop it stays readable until
 * qret_cycle_process, qret_resume, or qret_wait outside a cycle. (NULL, 0) asks for the total.
 * QRET_DONE, or QRET_ERR_ARGUMENT (ret_count is NULL, or ret_fds with a capacity). Since 0.1.0.
 */
QRET_API int qret_poll_fds(struct qret_ctx *ctx, struct qret_poll_fd *ret_fds, uint32_t capacity,
                           uint32_t *ret_count);

/*
 * When qret_cycle_process wants to be called at the latest; INT64_MAX outside a cycle and for NULL.
 * Since 0.1.0.
 */
QRET_API int64_t qret_deadline_us(struct qret_ctx *ctx);

/*
 * Sleeps in poll(2) until a descriptor is ready, the deadline passes, a stop comes or a signal
 * interrupts it (QRET_DONE each time); outside a cycle until the next cycle is due, and while
 * stopped not at all. Since 0.1.0.
 */
QRET_API int qret_wait(struct qret_ctx *ctx);

/* ---- Cadence, idleness, stop ---------------------------------------------------------------- */

/*
 * When the next cycle is due, on the clock of qret_now_us; at first: now. Includes the pause
 * after an overrun and the back-off after a lost connection. INT64_MAX for NULL. Since 0.1.0.
 */
QRET_API int64_t qret_next_cycle_us(struct qret_ctx *ctx);

/*
 * 1: the host has work of its own, so idle-only phases (event prune) wait; 0: it is idle. Any
 * thread, also inside a callback. QRET_DONE, QRET_ERR_ARGUMENT or QRET_ERR_FORKED. Since 0.1.0.
 */
QRET_API int qret_set_busy(struct qret_ctx *ctx, int32_t busy);

/*
 * Asks for a stop: no batch begins after it, and a sleeping poll(2) wakes. Sticky until
 * qret_resume. Any thread, and async-signal-safe (errno is kept). NULL is fine. Since 0.1.0.
 */
QRET_API void qret_stop(struct qret_ctx *ctx);

/* Takes the stop back. Any thread. NULL is fine. Since 0.1.0. */
QRET_API void qret_resume(struct qret_ctx *ctx);

/* ---- The last failure on a context; NULL is fine -------------------------------------------- */

/*
 * The message of the last failure in UTF-8, "" if none. This text and the two that follow are valid
 * until the next call on the context that is not one of these four. Since 0.1.0.
 */
QRET_API const char *qret_error_message(struct qret_ctx *ctx);

/* Its SQLSTATE, five characters, "" if none. Since 0.1.0. */
QRET_API const char *qret_error_sqlstate(struct qret_ctx *ctx);

/* What to do about it, or "". Since 0.1.0. */
QRET_API const char *qret_error_hint(struct qret_ctx *ctx);

/* 1 if the same call may succeed later without anybody mending anything, else 0. Since 0.1.0. */
QRET_API int32_t qret_error_is_retryable(struct qret_ctx *ctx);

#ifdef __cplusplus
}
#endif

#endif
