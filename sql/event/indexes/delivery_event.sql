-- Deliveries by event, where the unique key does not begin with it.
-- needed: SELECT @event@.event_index_needed_v1('deliveries')
-- Locks: SHARE UPDATE EXCLUSIVE; waits for older transactions; no transaction of its own around it.
CREATE INDEX CONCURRENTLY IF NOT EXISTS retention_delivery_event_idx@suffix@
    ON @delivery_table@ (event_id)
