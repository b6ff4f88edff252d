-- signature: event_prune_there_v1(bigint[], int)
--
-- How many deliveries these events have now; it stops counting at p_most. Locks: none.
CREATE OR REPLACE FUNCTION @event@.event_prune_there_v1(p_events bigint[], p_most int)
RETURNS bigint
LANGUAGE plpgsql
VOLATILE
SET search_path = pg_catalog, pg_temp
SET row_security = off
SET enable_seqscan = off
SET enable_bitmapscan = off
SET max_parallel_workers_per_gather = 0
SET plan_cache_mode = force_generic_plan
SET jit = off
AS $qretention$
BEGIN
    RETURN (
        SELECT count(*) FROM (
            SELECT FROM @delivery_table@ AS d WHERE d.event_id = ANY (p_events) LIMIT p_most
        ) AS there
    );
END
$qretention$
