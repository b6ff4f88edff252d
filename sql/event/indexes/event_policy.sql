-- Events that are deleted once consumed, each policy in the order of recording.
-- needed: SELECT @event@.event_index_needed_v1('policy')
-- Locks: SHARE UPDATE EXCLUSIVE; waits for older transactions; no transaction of its own around it.
CREATE INDEX CONCURRENTLY IF NOT EXISTS retention_event_policy_idx@suffix@
    ON @event_table@ (delete_when, recorded_at, id)
    WHERE delete_when OPERATOR(pg_catalog.<>) ''
