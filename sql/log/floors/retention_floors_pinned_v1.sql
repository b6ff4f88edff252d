-- signature: retention_floors_pinned_v1(timestamptz, uuid, int)
--
-- A page of the re-check of pinned partitions: those whose mark is no longer true. Reads only; hand
-- the answer to retention_floors_refresh_v1.
--
-- p_clock  the clock that policies are taken at; NULL: now()
-- p_after  the last partition of the page before (last); NULL: from the start
-- p_limit  pinned partitions to look at; at most 10,000
--
-- Columns: partition_id of a partition to refresh, then always one row with a NULL partition_id,
-- looked, the pinned partitions in this page, and last, where the next page goes on: NULL at the
-- end.
--
-- A mark is true as long as the group that it names, if any, has not passed the head that it was
-- made for, and that head is old enough for rule 2: one primary key look-up each. A partition that
-- a rule which heeds no consumer has come to reach is in the list of retention_floors_due_v1 all
-- the same.
--
-- Locks: none.
CREATE OR REPLACE FUNCTION @log@.retention_floors_pinned_v1(
    p_clock timestamptz,
    p_after uuid,
    p_limit int
)
RETURNS TABLE (partition_id uuid, looked bigint, last uuid)
LANGUAGE plpgsql
VOLATILE
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
SET jit = off
SET plan_cache_mode = force_generic_plan
AS $qretention$
#variable_conflict use_column
DECLARE
    v_limit constant int := LEAST(GREATEST(COALESCE(p_limit, 1), 1), 10000);
    v_zero constant uuid := '00000000-0000-0000-0000-000000000000';
BEGIN
    RETURN QUERY
    WITH page AS MATERIALIZED (
        SELECT x.* FROM (
            SELECT f.partition_id, f.queue_id, f.segments_floor, f.pinned_group, f.pinned_offset
            FROM @log@.retention_floors AS f
            WHERE f.pinned_since > '-infinity'
              AND f.partition_id >= COALESCE(p_after, v_zero)
              AND (p_after IS NULL OR f.partition_id <> p_after)
            ORDER BY f.partition_id
            LIMIT 10000
        ) AS x
        ORDER BY x.partition_id
        LIMIT v_limit
    ), cutoffs AS MATERIALIZED (
        SELECT c.queue_id, c.completed_cutoff
        FROM @log@.retention_cutoffs_v1(COALESCE(p_clock, now()),
            ARRAY(SELECT DISTINCT page.queue_id FROM page)) AS c
    )
    SELECT answer.*
    FROM (
        SELECT page.partition_id, NULL::bigint AS looked, NULL::uuid AS last
        FROM page
        LEFT JOIN cutoffs AS c ON c.queue_id = page.queue_id
        LEFT JOIN LATERAL (
            SELECT COALESCE(x.committed, -1) AS committed
            FROM @log@.log_consumers AS x
            WHERE x.partition_id = page.partition_id
              AND (page.pinned_group IS NULL OR x.consumer_group = page.pinned_group)
            LIMIT 1
        ) AS held ON true
        WHERE (page.segments_floor < c.completed_cutoff) IS NOT TRUE
           OR CASE WHEN page.pinned_group IS NULL
                   THEN held.committed IS NOT NULL OR NOT EXISTS (
                       SELECT FROM @log@.log_partitions AS p WHERE p.id = page.partition_id)
                   ELSE (held.committed < page.pinned_offset) IS NOT TRUE END
        UNION ALL
        SELECT NULL, count(*), CASE WHEN count(*) = v_limit THEN (
            SELECT p.partition_id FROM page AS p ORDER BY p.partition_id DESC LIMIT 1) END
        FROM page
    ) AS answer
    ORDER BY answer.partition_id;
END
$qretention$
