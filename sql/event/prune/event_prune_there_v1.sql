-- signature: event_prune_there_v1(bigint[], int)
--
-- What deliveries these events have now.
--
-- p_events  the events
-- p_most    how many deliveries to read at most
--
-- Columns: deliveries, their number; receivers and newest, one entry a receiver, and when it last
-- succeeded among them; NULL: never. A success dated 'infinity' or outside the years 1 to 9998 is
-- nobody's newest. Locks: none.
CREATE OR REPLACE FUNCTION @event@.event_prune_there_v1(
    p_events bigint[],
    p_most int,
    OUT deliveries bigint,
    OUT receivers text[],
    OUT newest timestamptz[]
)
LANGUAGE plpgsql
VOLATILE
SET search_path = pg_catalog, pg_temp
SET row_security = off
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
SET max_parallel_workers_per_gather = 0
SET plan_cache_mode = force_generic_plan
SET jit = off
AS $qretention$
BEGIN
    SELECT
        COALESCE(sum(r.deliveries), 0),
        COALESCE(array_agg(r.receiver_key), '{}'),
        COALESCE(array_agg(r.newest), '{}')
    INTO deliveries, receivers, newest
    FROM (
        SELECT t.receiver_key, count(*) AS deliveries,
            max(t.succeeded_at) FILTER (
                WHERE t.succeeded_at >= '0001-01-01 00:00:00+00'::timestamptz
                    AND t.succeeded_at < '9999-01-01 00:00:00+00'::timestamptz) AS newest
        FROM (
            SELECT d.receiver_key, d.succeeded_at FROM @delivery_table@ AS d
            WHERE d.event_id = ANY (p_events)
            LIMIT p_most
        ) AS t
        GROUP BY t.receiver_key
    ) AS r;
END
$qretention$
