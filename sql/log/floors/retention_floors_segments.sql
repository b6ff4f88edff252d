-- Finds the partitions of a queue whose segments may be due.
-- Locks: SHARE UPDATE EXCLUSIVE on retention_floors; blocks no write.
CREATE INDEX CONCURRENTLY IF NOT EXISTS retention_floors_segments
    ON @log@.retention_floors (queue_id, segments_floor)
    WHERE pinned_since IS NULL AND look_xid IS NULL
