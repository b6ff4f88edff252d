-- A page of the slow walk over all partitions, a round a day, that makes wrong floors right.
--
-- $1 clock timestamptz   the cycle's clock
-- $2 after uuid          last of the page before; NULL: from the start
-- $3 limit int4          ids to look at, up to 1000
--
-- Columns: those of floors_refresh.sql, then looked int8, last uuid, total int8. The last row has a
-- NULL partition_id, says how many were looked at, where the next page goes on (NULL: the end of
-- the round), and about how many partitions there are, to pace the round by.
--
-- Locks and transaction: those of floors_refresh.sql.
SELECT w.partition_id, w.queue_id, w.state, w.consumer_group, w.due, w.future,
       w.looked, w.last, w.total
FROM @log@.retention_floors_walk_v1($1::pg_catalog.timestamptz, $2::pg_catalog.uuid,
    $3::pg_catalog.int4) AS w
