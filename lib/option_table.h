/* SPDX-License-Identifier: MIT */
/*
 * Every option, once. The enum, the parser, the environment loader, qret_option_get_info, the
 * driver's help and the manual all come from these rows. Included with the macros defined that the
 * includer wants; no include guard, on purpose.
 *
 *   NUMBER(id, name, env, env_scale, default, least, most, help)
 *   FLOOR(...)   a NUMBER that is raised to `least`, with a warning, instead of being refused
 *   BOOL(id, name, env, default, help)
 *   CHOICE(id, name, default, "first|second|...", help)
 *   NAME(id, name, default, help)      one SQL identifier
 *   RELATION(id, name, help)           an optionally qualified relation; empty: our own
 *   ROLE(id, name, help)               one role name, or empty
 */
NUMBER(INTERVAL_MS, "interval_ms", "RETENTION_INTERVAL", 1, 5000, 1, 9007199254740992,
       "milliseconds from the start of one cycle to the start of the next")
NUMBER(BATCH_SIZE, "batch_size", "RETENTION_BATCH_SIZE", 1, 1000, 1, 1000000,
       "most rows that the steps in flight on one connection may delete together")
NUMBER(PARALLELISM, "parallelism", "RETENTION_PARALLELISM", 1, 1, 1, 16,
       "connections (lanes) that share one work list")
BOOL(PARTITION_CLEANUP, "partition_cleanup", "QUEEN_PARTITION_CLEANUP_ENABLED", 1,
     "delete partitions that are empty and silent")
FLOOR(PARTITION_CLEANUP_DAYS, "partition_cleanup_days", "PARTITION_CLEANUP_DAYS", 1, 30, 1, 2147483647,
      "days of silence before an empty partition goes")
FLOOR(METRICS_RETENTION_DAYS, "metrics_retention_days", "METRICS_RETENTION_DAYS", 1, 90, 1, 2147483647,
      "days that rows of the metrics tables are kept")
NUMBER(EVENT_RETENTION_DAYS, "event_retention_days", "RETENTION_DAYS", 1, 90, 0, 24855,
       "days that an event without a policy of its own is kept; 0: until it is settled")
NUMBER(EVENT_BATCH_ROWS, "event_batch_rows", "PRUNE_BATCH_ROWS", 1, 5000, 1, 1000000,
       "most rows, events and deliveries together, that one prune step deletes")
BOOL(EVENT_PRUNE, "event_prune", "RELAY_PRUNE", 1, "prune the outbox in the cycle")
NUMBER(EVENT_PRUNE_MAX_DEFER_MS, "event_prune_max_defer_ms", "", 1, 600000, 0, 9007199254740992,
       "longest that a busy host defers a prune; 0: for as long as it is busy")
NUMBER(EVENT_PRUNE_INTERVAL_MS, "event_prune_interval_ms", "RELAY_PRUNE_SECONDS", 1000, 60000, 0, 9007199254740992,
       "milliseconds between prunes of the outbox; 0: every cycle")
NUMBER(EVENT_PRUNE_LIMIT, "event_prune_limit", "", 1, 0, 0, 9007199254740992,
       "most events that one cycle may delete; 0: no limit")
CHOICE(ENGINES, "engines", "log", "log|event|log,event", "which engines the cycle runs")
NAME(LOG_SCHEMA, "log_schema", "queen", "schema of the segment log")
NAME(STREAMS_SCHEMA, "streams_schema", "queen_streams", "schema of the streams state")
NAME(EVENT_SCHEMA, "event_schema", "outbox", "schema of the outbox functions, and of its tables where they are ours")
CHOICE(GATE, "gate", "session", "session|lease|none",
       "what elects the leader: a session lock, a lease row, or the host itself")
NUMBER(GATE_KEY, "gate_key", "", 1, 737001, -9223372036854775807, 9223372036854775807,
       "advisory lock key of the gate")
CHOICE(POOLER, "pooler", "none", "none|transaction", "what stands between the library and the server")
CHOICE(WORK_LIST, "work_list", "auto", "auto|scan|due",
       "where work comes from: all partitions, or those that have something to delete")
NUMBER(WORKLIST_LIMIT, "worklist_limit", "", 1, 0, 0, 9007199254740992,
       "most items that qret_worklist_build returns; 0: all")
CHOICE(STEP_VERSION, "step_version", "auto", "auto|1|2", "which step functions are called")
NUMBER(STEP_TARGET_MS, "step_target_ms", "", 1, 5, 1, 600000,
       "milliseconds that one step should take; the batch size follows")
NUMBER(CYCLE_BUDGET_MS, "cycle_budget_ms", "", 1, 0, 0, 9007199254740992,
       "milliseconds after which a cycle begins no further batch; 0: none")
NUMBER(MAX_ROWS_PER_SECOND, "max_rows_per_second", "", 1, 0, 0, 9007199254740992,
       "rows deleted per second at the most, by waiting between transactions; 0: no limit")
NUMBER(CONNECT_TIMEOUT_MS, "connect_timeout_ms", "", 1, 10000, 1, 3600000,
       "milliseconds for connecting to one host")
NUMBER(STATEMENT_TIMEOUT_MS, "statement_timeout_ms", "", 1, 30000, 0, 2147483647,
       "milliseconds for one statement; 0: no limit")
NUMBER(LOCK_TIMEOUT_MS, "lock_timeout_ms", "", 1, 500, 0, 2147483647,
       "milliseconds for one lock; 0: no limit")
NUMBER(LATE_LOCK_MS, "late_lock_ms", "", 1, 200, 0, 2147483647,
       "milliseconds that a second step waits for the partition's lock; 0: it does not wait")
NUMBER(LEASE_MS, "lease_ms", "", 1, 0, 0, 2147483647,
       "milliseconds that a lease lasts without renewal, one interval at the most; 0: one interval")
NUMBER(IDLE_LIMIT_MS, "idle_limit_ms", "", 1, 30000, 0, 2147483647,
       "milliseconds after which a dead peer is given up, on both sides; 0: the system's")
ROLE(GRANT_ROLE, "grant_role", "role that an installation grants what running needs; empty: none")
RELATION(EVENT_TABLE, "event_table", "a host's own event table; empty: ours")
RELATION(DELIVERY_TABLE, "delivery_table", "a host's own delivery table; empty: ours")
RELATION(SUCCESS_TABLE, "success_table", "a host's own table of last successes; empty: ours")
