-- signature: retention_floors_walk_v1(timestamptz, uuid, int)
--
-- A page of the slow walk that makes floors true again whatever happened to them: partitions
-- inserted without the trigger (restore, replication apply), rows restored or aged by hand, a
-- repaired clock, a partition moved to another queue or dropped. A full round a day is enough.
--
-- p_clock  the clock that policies are taken at; NULL: now()
-- p_after  the last id of the page before (last); NULL: from the start
-- p_limit  ids to look at; at most 1000
--
-- Columns: those of retention_floors_refresh_v1, then always one row with a NULL partition_id that
-- says looked, the ids in this page, last, where the next page goes on (NULL at the end), and
-- total, about how many partitions there are, from the planner's statistics, to pace the round.
--
-- Locks, transaction and errors: those of the refresh. Writes only what differs.
CREATE OR REPLACE FUNCTION @log@.retention_floors_walk_v1(
    p_clock timestamptz,
    p_after uuid,
    p_limit int
)
RETURNS TABLE (
    partition_id uuid,
    queue_id uuid,
    state text,
    consumer_group text,
    due boolean,
    future boolean,
    looked bigint,
    last uuid,
    total bigint
)
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
    v_limit constant int := LEAST(GREATEST(COALESCE(p_limit, 1), 1), 1000);
    v_zero constant uuid := '00000000-0000-0000-0000-000000000000';
    v_ids uuid[];
BEGIN
    -- Both tables, so that rows without a partition are met too.
    v_ids := ARRAY(
        SELECT both_.id
        FROM (
            (SELECT p.id
             FROM @log@.log_partitions AS p
             WHERE p.id >= COALESCE(p_after, v_zero) AND (p_after IS NULL OR p.id <> p_after)
             ORDER BY p.id
             LIMIT v_limit)
            UNION
            (SELECT f.partition_id
             FROM @log@.retention_floors AS f
             WHERE f.partition_id >= COALESCE(p_after, v_zero)
               AND (p_after IS NULL OR f.partition_id <> p_after)
             ORDER BY f.partition_id
             LIMIT v_limit)
        ) AS both_
        ORDER BY both_.id
        LIMIT v_limit
    );
    RETURN QUERY
    SELECT r.partition_id, r.queue_id, r.state, r.consumer_group, r.due, r.future,
           NULL::bigint, NULL::uuid, NULL::bigint
    FROM @log@.retention_floors_refresh_v1(v_ids, p_clock) AS r;
    RETURN QUERY
    SELECT NULL::uuid, NULL::uuid, NULL::text, NULL::text, NULL::boolean, NULL::boolean,
           cardinality(v_ids)::bigint,
           CASE WHEN cardinality(v_ids) = v_limit THEN v_ids[v_limit] END,
           (SELECT GREATEST(c.reltuples, 0)::bigint
            FROM pg_class AS c
            WHERE c.oid = to_regclass(format('%I.log_partitions', @log_literal@)));
END
$qretention$
