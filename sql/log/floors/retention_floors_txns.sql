-- Finds the partitions of a queue whose sidecar rows may be due.
-- Locks: SHARE UPDATE EXCLUSIVE on retention_floors; blocks no write.
CREATE INDEX CONCURRENTLY IF NOT EXISTS retention_floors_txns
    ON @log@.retention_floors (queue_id, txns_floor)
    WHERE look_xid IS NULL
