/* SPDX-License-Identifier: MIT */
/*
 * Every log event, once: EVENT(id, "stable id", LEVEL, least seconds between two records, meaning, what to do).
 * Ids are never reused. The manual page qretention-messages(7) is made from these rows. No include guard, on purpose.
 */
EVENT(SWEPT, "swept", INFO, 0, "a cycle deleted something; the record holds its counts", "nothing")
EVENT(IDLE, "idle", DEBUG, 0, "a cycle found nothing to delete", "nothing")
EVENT(BUSY, "busy", DEBUG, 0, "another instance leads, or the cluster's next cycle is not due", "nothing")
EVENT(PAUSED, "paused", INFO, 60, "an operator paused every rule that would run", "unpause when ready")
EVENT(STOPPED, "stopped", DEBUG, 0, "a stop ended the cycle between two batches", "nothing")
EVENT(BUDGET, "budget", INFO, 30, "the budget of the cycle ran out with work left",
      "raise cycle_budget_ms or event_prune_limit if the backlog grows")
EVENT(STANDBY, "standby", INFO, 0, "the server is read-only; reported once until that changes",
      "connect to the primary, or leave it: the library tries again every interval")
EVENT(CYCLE_ERROR, "cycle_error", ERROR, 30, "a cycle ended in an error", "see sqlstate, message and hint of the record")
EVENT(ITEM_FAILED, "item_failed", WARN, 30, "a step failed and its partition was skipped and backs off; in phase floors, partitions lost their turn", "see sqlstate and message of the record")
EVENT(METRICS_PURGE_ERROR, "metrics_purge_error", WARN, 60, "a metrics table could not be purged; the cycle went on",
      "grant what is missing, or create the table")
EVENT(EVENT_PRUNE_ERROR, "event_prune_error", ERROR, 30, "a prune step of the outbox failed; tried again at the next interval",
      "see sqlstate and message of the record")
EVENT(RELEASE_FAILED, "release_failed", WARN, 60, "the gate's release could not be confirmed; the connection is closed or tainted",
      "nothing for an owned connection; discard a borrowed one")
EVENT(LEADER_LOST, "leader_lost", ERROR, 30, "the gate was lost in mid-cycle; nothing more was deleted",
      "look for terminated sessions, or a lease shorter than the pauses of this host")
EVENT(LANE_LOST, "lane_lost", WARN, 30, "a further connection could not be opened or was lost; the others go on", "see the message")
EVENT(RECONNECT, "reconnect", INFO, 30, "a connection was lost and is opened again", "nothing")
EVENT(NOTICE, "notice", DEBUG, 0, "the server sent a notice", "nothing")
EVENT(OPTION_CLAMPED, "option_clamped", WARN, 0, "an option lay below its floor and was raised to it", "set a value in the range")
EVENT(INSTALLED, "installed", INFO, 0, "a part of the schema was installed or upgraded", "nothing")
EVENT(FOREIGN_FUNCTION, "foreign_function", WARN, 0, "a function of this name was created by somebody else and is left alone",
      "nothing if it keeps the contract; else drop it and install again")
EVENT(FUTURE_HEAD, "future_head", WARN, 60, "a partition's first segment is dated in the server's future and holds what follows",
      "check the clock of the server that wrote it")
EVENT(PINNED, "pinned", INFO, 60, "a partition is due by age but held by its slowest consumer group",
      "let the group catch up, or delete it if it is abandoned")
EVENT(ORPHAN, "orphan", WARN, 60, "dead letters or streams state of a partition that is gone; they are never deleted, and their readers find them no more",
      "look at the rows of that partition_id, and delete them if nobody needs them")
EVENT(VACUUM_BLOCKED, "vacuum_blocked", WARN, 0, "an old snapshot keeps what was deleted in the tables, so every scan grows longer; reported once until that changes",
      "end the transaction of that process; without a pid it is a prepared one")
EVENT(POISON, "poison", WARN, 60, "outbox events have a time that no window can be added to; they are left alone",
      "correct or delete the rows")
EVENT(SETTLED_LATE, "settled_late", DEBUG, 0, "a busy host deferred the prune longer than event_prune_max_defer_ms; one step ran", "nothing")
