-- signature: event_prune_count_v1(bigint[], bigint[], boolean[])
--
-- The second look of event_prune_batch_v1, event by event, for when the sum does not come out even.
--
-- p_events                the locked events
-- p_held, p_terminal      the event of each locked delivery, and whether nothing is owed by it
--
-- Columns, a row an event: id; there, the deliveries it has now; held, those locked; terminal,
-- those of them by which nothing is owed. Locks: none.
CREATE OR REPLACE FUNCTION @event@.event_prune_count_v1(
    p_events bigint[],
    p_held bigint[],
    p_terminal boolean[],
    OUT id bigint,
    OUT there bigint,
    OUT held bigint,
    OUT terminal bigint
)
RETURNS SETOF record
LANGUAGE plpgsql
VOLATILE
SET search_path = pg_catalog, pg_temp
SET row_security = off
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_nestloop = off
SET max_parallel_workers_per_gather = 0
SET plan_cache_mode = force_generic_plan
SET jit = off
AS $qretention$
BEGIN
    RETURN QUERY
    SELECT e.id, COALESCE(s.there, 0), COALESCE(h.held, 0), COALESCE(h.terminal, 0)
    FROM unnest(p_events) AS e (id)
    LEFT JOIN (
        SELECT d.event_id, count(*) AS there
        FROM @delivery_table@ AS d
        WHERE d.event_id = ANY (p_events)
        GROUP BY d.event_id
    ) AS s ON s.event_id = e.id
    LEFT JOIN (
        SELECT l.event_id, count(*) AS held, count(*) FILTER (WHERE l.terminal) AS terminal
        FROM unnest(p_held, p_terminal) AS l (event_id, terminal)
        GROUP BY l.event_id
    ) AS h ON h.event_id = e.id;
END
$qretention$
