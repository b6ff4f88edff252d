-- signature: event_prune_fit_v1(bigint[], int)
--
-- How many of these events, from the first on, have together at most p_rows rows, an event and each
-- of its deliveries counting one. 0: the first alone has more.
--
-- Reads at most p_rows + 1 deliveries, in the order of the events: so an event whose deliveries
-- were not all read is the last one read, and those before it have used up the rows already.
-- Locks: none.
CREATE OR REPLACE FUNCTION @event@.event_prune_fit_v1(p_ids bigint[], p_rows int)
RETURNS int
LANGUAGE plpgsql
VOLATILE
SET search_path = pg_catalog, pg_temp
SET row_security = off
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_nestloop = off
SET max_parallel_workers_per_gather = 0
SET jit = off
AS $qretention$
BEGIN
    RETURN (
        SELECT COALESCE(max(f.position) FILTER (WHERE f.used <= p_rows), 0)
        FROM (
            SELECT e.position, sum(1 + COALESCE(o.deliveries, 0)) OVER (ORDER BY e.position) AS used
            FROM unnest(p_ids) WITH ORDINALITY AS e (id, position)
            LEFT JOIN (
                SELECT r.event_id, count(*) AS deliveries
                FROM (
                    SELECT d.event_id
                    FROM unnest(p_ids) AS e (id)
                    CROSS JOIN LATERAL (
                        SELECT d.event_id FROM @delivery_table@ AS d
                        WHERE d.event_id = e.id
                        LIMIT p_rows::bigint + 1
                    ) AS d
                    LIMIT p_rows::bigint + 1
                ) AS r
                GROUP BY r.event_id
            ) AS o ON o.event_id = e.id
        ) AS f
    );
END
$qretention$
