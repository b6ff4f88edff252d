-- A page of the work list read again by id, at the same clock: policies as they are now.
--
-- $1 clock timestamptz   the cycle's clock
-- $2 ids uuid[]          the partitions; those dropped since are left out of the answer
--
-- Columns as in worklist_scan.sql. Each id is its own look-up, so no plan can turn the list into a
-- scan of the table, and the page is materialized so that the queues are joined once, not once a
-- partition. Locks: none. Transaction: one read-only statement.
WITH page AS MATERIALIZED (
    SELECT $1::pg_catalog.timestamptz AS clock,
           (pg_catalog.date_part('epoch', $1::pg_catalog.timestamptz)
               OPERATOR(pg_catalog.+) 210866803200)::pg_catalog.int8 AS reach,
           p.id,
           p.queue_id
    FROM pg_catalog.unnest($2::pg_catalog.uuid[]) AS wanted(id)
    CROSS JOIN LATERAL (
        SELECT lp.id, lp.queue_id
        FROM @log@.log_partitions lp
        WHERE lp.id OPERATOR(pg_catalog.=) wanted.id
        LIMIT 1
    ) p
)
SELECT
    page.clock,
    page.id AS partition_id,
    page.queue_id,
    CASE WHEN q.retention_enabled
          AND q.retention_seconds OPERATOR(pg_catalog.>) 0
          AND q.retention_seconds OPERATOR(pg_catalog.<) page.reach
         THEN page.clock OPERATOR(pg_catalog.-)
              pg_catalog.make_interval(secs => q.retention_seconds)
    END AS all_cutoff,
    CASE WHEN q.retention_enabled
          AND q.completed_retention_seconds OPERATOR(pg_catalog.>) 0
          AND q.completed_retention_seconds OPERATOR(pg_catalog.<) page.reach
         THEN page.clock OPERATOR(pg_catalog.-)
              pg_catalog.make_interval(secs => q.completed_retention_seconds)
    END AS completed_cutoff,
    CASE WHEN q.id IS NOT NULL
          AND GREATEST(q.dedup_window_seconds, q.completed_retention_seconds, 900)
              OPERATOR(pg_catalog.<) page.reach
         THEN page.clock OPERATOR(pg_catalog.-) pg_catalog.make_interval(secs =>
              GREATEST(q.dedup_window_seconds, q.completed_retention_seconds, 900))
    END AS txns_cutoff,
    CASE WHEN q.max_wait_time_seconds OPERATOR(pg_catalog.>) 0
          AND q.max_wait_time_seconds OPERATOR(pg_catalog.<) page.reach
         THEN page.clock OPERATOR(pg_catalog.-)
              pg_catalog.make_interval(secs => q.max_wait_time_seconds)
    END AS max_wait_cutoff
FROM page
LEFT JOIN @log@.queues q ON q.id OPERATOR(pg_catalog.=) page.queue_id
ORDER BY page.id
