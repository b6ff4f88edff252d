-- Events with a window of their own by age, for whoever looks at our own tables; the prune itself
-- finds them by expiry.
-- needed: SELECT @event@.event_index_needed_v1('own_window')
-- Locks: SHARE UPDATE EXCLUSIVE; waits for older transactions; no transaction of its own around it.
CREATE INDEX CONCURRENTLY IF NOT EXISTS retention_event_own_window_idx@suffix@
    ON @event_table@ (recorded_at) WHERE retention_seconds IS NOT NULL
