-- signature: retention_floors_backfill_v1(int)
--
-- Files partitions that have no floors row, as unknown: those older than the trigger.
--
-- p_limit  most rows to add in this transaction
--
-- Returns how many were added; 0: none is missing. The anti-join goes along both primary keys and
-- starts at the beginning each time, which is cheap beside the inserts as long as batches are
-- large; nothing waits for the rows it writes.
--
-- Locks: the new rows. One transaction.
CREATE OR REPLACE FUNCTION @log@.retention_floors_backfill_v1(p_limit int)
RETURNS bigint
LANGUAGE plpgsql
VOLATILE
SET search_path = pg_catalog, pg_temp
SET jit = off
SET plan_cache_mode = force_generic_plan
AS $qretention$
DECLARE
    v_added bigint;
BEGIN
    INSERT INTO @log@.retention_floors (partition_id, queue_id, look_xid)
    SELECT p.id, p.queue_id, pg_current_xact_id()::text::bigint
    FROM @log@.log_partitions AS p
    WHERE NOT EXISTS (
        SELECT FROM @log@.retention_floors AS f WHERE f.partition_id = p.id
    )
    ORDER BY p.id
    LIMIT GREATEST(COALESCE(p_limit, 1), 1)
    ON CONFLICT (partition_id) DO NOTHING;
    GET DIAGNOSTICS v_added = ROW_COUNT;
    RETURN v_added;
END
$qretention$
