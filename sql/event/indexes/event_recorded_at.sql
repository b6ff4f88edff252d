-- Events by age, for whoever looks at our own tables; the prune has indexes of its own.
-- needed: SELECT @event@.event_index_needed_v1('recorded_at')
-- Locks: SHARE UPDATE EXCLUSIVE; waits for older transactions; no transaction of its own around it.
CREATE INDEX CONCURRENTLY IF NOT EXISTS retention_event_recorded_at_idx@suffix@
    ON @event_table@ (recorded_at)
