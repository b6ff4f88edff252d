-- Owed rows and dead letters by event: what keeps an event is found without reading what was
-- delivered. The status rides along so that the rows themselves are not read either; no update is
-- dearer for it, since the predicate has it changed in the index anyway.
-- needed: SELECT @event@.event_index_needed_v1('unfinished')
-- Locks: SHARE UPDATE EXCLUSIVE; waits for older transactions; no transaction of its own around it.
CREATE INDEX CONCURRENTLY IF NOT EXISTS retention_delivery_unfinished_idx@suffix@
    ON @delivery_table@ (event_id) INCLUDE (status)
    WHERE status OPERATOR(pg_catalog.<>) 'succeeded'
