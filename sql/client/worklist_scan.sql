-- The seed's work list, a page at a time: every partition with its cutoffs, in ascending id.
--
-- $1 clock timestamptz   the cycle's one clock; NULL: the server's now(), and the answer tells it
-- $2 after uuid          the last partition of the page before; NULL: from the start
-- $3 limit int4          partitions to return; a page never holds more than 1000
--
-- Columns, the same in every work list: clock timestamptz, partition_id uuid, queue_id uuid, and
-- all_cutoff, completed_cutoff, txns_cutoff, max_wait_cutoff timestamptz. A NULL cutoff switches
-- its rule off. With no partition left, one row tells the clock and has a NULL partition_id.
--
-- A window is in force when it is positive and its subtraction stays inside what a timestamp can
-- hold: `reach` is the number of seconds from the first timestamp there is to the clock. A
-- partition whose queue is missing keeps its place in the page, with no cutoff at all, so that a
-- short page always means the end.
--
-- Operators and types are qualified because no search_path can be relied on here. The inner LIMIT
-- is a literal because a generic plan takes a parameter for a tenth of the table, and would sort
-- the whole of it for every page.
--
-- Locks: none. Transaction: one read-only statement.
@shared:cutoffs@
FROM (
    SELECT c.clock,
           (pg_catalog.date_part('epoch', c.clock) OPERATOR(pg_catalog.+) 210866803200)
               ::pg_catalog.int8 AS reach,
           p.id,
           p.queue_id
    FROM (SELECT COALESCE($1::pg_catalog.timestamptz, pg_catalog.now()) AS clock) c
    LEFT JOIN (
        SELECT bounded.id, bounded.queue_id
        FROM (
            SELECT lp.id, lp.queue_id
            FROM @log@.log_partitions lp
            WHERE lp.id OPERATOR(pg_catalog.>=) COALESCE($2::pg_catalog.uuid,
                      '00000000-0000-0000-0000-000000000000'::pg_catalog.uuid)
              AND ($2::pg_catalog.uuid IS NULL OR lp.id OPERATOR(pg_catalog.<>) $2)
            ORDER BY lp.id
            LIMIT 1000
        ) bounded
        ORDER BY bounded.id
        LIMIT $3::pg_catalog.int4
    ) p ON true
) page
LEFT JOIN @log@.queues q ON q.id OPERATOR(pg_catalog.=) page.queue_id
ORDER BY page.id
