-- The range of the default window: only events without a window of their own, however many have
-- one. With the id, so that events recorded at one instant are not read again by every batch.
-- needed: SELECT @event@.event_index_needed_v1('default_window')
-- Locks: SHARE UPDATE EXCLUSIVE; waits for older transactions; no transaction of its own around it.
CREATE INDEX CONCURRENTLY IF NOT EXISTS retention_event_default_window_idx@suffix@
    ON @event_table@ (recorded_at, id)
    WHERE retention_seconds IS NULL
