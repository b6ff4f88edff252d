-- Finds the pinned partitions of a queue that a rule which heeds no consumer has come to reach.
-- Locks: SHARE UPDATE EXCLUSIVE on retention_floors; blocks no write.
CREATE INDEX CONCURRENTLY IF NOT EXISTS retention_floors_pinned
    ON @log@.retention_floors (queue_id, segments_floor)
    WHERE pinned_since IS NOT NULL AND look_xid IS NULL
