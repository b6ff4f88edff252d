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
@shared:cutoffs@
FROM page
LEFT JOIN @log@.queues q ON q.id OPERATOR(pg_catalog.=) page.queue_id
ORDER BY page.id
