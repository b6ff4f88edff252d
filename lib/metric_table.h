/* SPDX-License-Identifier: MIT */
/*
 * Every metric series, once. No include guard, on purpose.
 *   COUNTER(id, name, unit, phase, report field, help)        the field of the cycle's report, added up
 *   GAUGE(id, name, unit, phase, report field, divisor, help) the field as it stands
 *   HISTOGRAM(id, name, unit, phase, help)                    one sample a step
 *   EVENTS(id, name, unit, phase, help)                       a counter fed by the cycle's outcome
 *   MET(id, name, unit, phase, help)                          a gauge of what is reported and else left alone: struct met
 */
EVENTS(CYCLES, "qretention_cycles_total", "cycles", "", "Cycles that ended, whatever their outcome.")
EVENTS(CYCLES_FAILED, "qretention_cycles_failed_total", "cycles", "", "Cycles that ended in an error.")
EVENTS(CYCLES_SKIPPED, "qretention_cycles_skipped_total", "cycles", "", "Cycles skipped: another instance leads, the server is read-only, or everything is paused.")
COUNTER(STEPS, "qretention_steps_total", "steps", "", steps, "Step calls.")
COUNTER(SEGMENTS, "qretention_segments_deleted_total", "segments", "retention", segments_deleted, "Segments deleted by the time and consumed-only rules.")
COUNTER(EVICTED, "qretention_max_wait_evicted_total", "segments", "max_wait", max_wait_evicted, "Segments evicted by the max-wait rule.")
COUNTER(MESSAGES, "qretention_messages_deleted_total", "messages", "", messages_deleted, "Messages of the deleted and evicted segments.")
COUNTER(TXNS, "qretention_txns_purged_total", "rows", "txns_purge", txns_purged, "Rows purged from the hash sidecar.")
COUNTER(PARTITIONS, "qretention_partitions_deleted_total", "partitions", "partition_cleanup", partitions_deleted, "Empty partitions deleted.")
COUNTER(METRICS, "qretention_metrics_purged_total", "rows", "metrics_purge", metrics_purged, "Rows purged from the metrics tables.")
COUNTER(EVENTS_DELETED, "qretention_events_deleted_total", "events", "event_prune", events_deleted, "Outbox events deleted.")
COUNTER(DELIVERIES, "qretention_deliveries_deleted_total", "deliveries", "event_prune", deliveries_deleted, "Deliveries deleted with their events.")
COUNTER(ITEMS_FAILED, "qretention_items_failed_total", "items", "", items_failed, "Items left for a later cycle: a step failed, its lock was held, or it is backed off.")
COUNTER(ITEMS_LOCKED, "qretention_items_locked_total", "items", "", items_locked, "Of these, items whose lock was held.")
COUNTER(ROUND_TRIPS, "qretention_round_trips_total", "round trips", "", round_trips, "Times the library waited for an answer.")
GAUGE(ITEMS_PINNED, "qretention_items_pinned", "partitions", "", items_pinned, 1, "Partitions due by age but held by a slow group.")
MET(BACKED_OFF, "qretention_items_backed_off", "partitions", "", "Partitions whose steps failed before and are tried less often.")
MET(FUTURE_HEADS, "qretention_future_heads", "partitions", "", "How often the last cycle met a partition whose first segment is dated in the server's future.")
MET(ORPHANS, "qretention_orphan_partitions", "partitions", "partition_cleanup", "Partitions that are gone and left dead letters or streams state, as of the last clean-up round.")
MET(DEAD_ROWS, "qretention_dead_rows", "rows", "", "Deleted rows that VACUUM has not removed from the tables that are retained, as of the last look, one a minute.")
MET(HELD_SNAPSHOT, "qretention_oldest_snapshot_seconds", "seconds", "", "How long the oldest transaction that this role may see has kept VACUUM from removing what was deleted since.")
GAUGE(ROWS_POISON, "qretention_rows_poison", "events", "event_prune", rows_poison, 1, "Events with an unusable time, left alone.")
GAUGE(CYCLE_SECONDS, "qretention_cycle_duration_seconds", "seconds", "", elapsed_us, 1000000, "How long the last cycle took.")
GAUGE(FAILURES, "qretention_consecutive_failures", "cycles", "", consecutive_failures, 1, "Cycles in a row that ended in an error.")
GAUGE(LAST_SUCCESS, "qretention_last_success_timestamp_seconds", "seconds", "", last_success_us, 1000000, "When the last good cycle ran, by the server's clock.")
GAUGE(OVERDUE, "qretention_oldest_overdue_seconds", "seconds", "", oldest_overdue_us, 1000000, "How far past its cutoff the oldest row left behind is.")
HISTOGRAM(STEP_RETENTION, "qretention_step_duration_seconds", "seconds", "retention", "How long one step took on the server.")
HISTOGRAM(STEP_TXNS_PURGE, "qretention_step_duration_seconds", "seconds", "txns_purge", "How long one step took on the server.")
HISTOGRAM(STEP_MAX_WAIT, "qretention_step_duration_seconds", "seconds", "max_wait", "How long one step took on the server.")
HISTOGRAM(STEP_PARTITION_CLEANUP, "qretention_step_duration_seconds", "seconds", "partition_cleanup", "How long one step took on the server.")
HISTOGRAM(STEP_METRICS_PURGE, "qretention_step_duration_seconds", "seconds", "metrics_purge", "How long one step took on the server.")
HISTOGRAM(STEP_EVENT_PRUNE, "qretention_step_duration_seconds", "seconds", "event_prune", "How long one step took on the server.")
