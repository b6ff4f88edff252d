-- The range of the default window. With the id, so that events recorded at one instant are not read
-- again by every batch.
-- needed: SELECT @event@.event_index_needed_v1('recorded_at')
-- Locks: SHARE UPDATE EXCLUSIVE; waits for older transactions; no transaction of its own around it.
CREATE INDEX CONCURRENTLY IF NOT EXISTS retention_event_recorded_at_idx
    ON @event_table@ (recorded_at, id)
