-- The pinned partitions in the order of the rotating re-check. The predicate is written so that it
-- is implied by the re-check's query alone: another would read every pinned row through this index.
-- Locks: SHARE UPDATE EXCLUSIVE on retention_floors; blocks no write.
CREATE INDEX CONCURRENTLY IF NOT EXISTS retention_floors_recheck
    ON @log@.retention_floors (partition_id)
    WHERE pinned_since > '-infinity'
