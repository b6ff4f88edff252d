-- A page of the rotating re-check of pinned partitions: those to pass to floors_refresh.sql.
--
-- $1 clock timestamptz   the cycle's clock
-- $2 after uuid          last of the page before; NULL: from the start
-- $3 limit int4          pinned partitions to look at, up to 10,000
--
-- Columns: partition_id uuid, looked int8, last uuid. The last row has a NULL partition_id, says
-- how many were looked at, and where the next page goes on; a NULL there is the end of the round.
--
-- Locks: none. Transaction: one read-only statement.
SELECT p.partition_id, p.looked, p.last
FROM @log@.retention_floors_pinned_v1($1::pg_catalog.timestamptz, $2::pg_catalog.uuid,
    $3::pg_catalog.int4) AS p
