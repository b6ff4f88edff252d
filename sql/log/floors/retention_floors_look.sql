-- Finds the partitions of a queue that must be looked at whatever their floors say, oldest mark
-- first. Locks: SHARE UPDATE EXCLUSIVE on retention_floors; blocks no write.
CREATE INDEX CONCURRENTLY IF NOT EXISTS retention_floors_look
    ON @log@.retention_floors (queue_id, look_xid)
    WHERE look_xid IS NOT NULL
