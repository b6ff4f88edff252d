-- signature: retention_floors_reset_v1(uuid)
--
-- Forgets what is known of partitions, at once: for use after rows were restored or aged by hand,
-- or a clock was repaired. Floors go to -infinity, and each partition is looked at once by the next
-- cycle.
--
-- p_queue_id  the partitions of that queue; NULL: all
--
-- Returns the number of partitions concerned, those that had no floors row yet among them.
--
-- Locks: the floors rows, until the transaction ends. One transaction.
CREATE OR REPLACE FUNCTION @log@.retention_floors_reset_v1(p_queue_id uuid DEFAULT NULL)
RETURNS bigint
LANGUAGE plpgsql
VOLATILE
SET search_path = pg_catalog, pg_temp
SET jit = off
SET plan_cache_mode = force_generic_plan
AS $qretention$
DECLARE
    v_count bigint;
BEGIN
    INSERT INTO @log@.retention_floors AS f (partition_id, queue_id, look_xid)
    SELECT p.id, p.queue_id, pg_current_xact_id()::text::bigint
    FROM @log@.log_partitions AS p
    WHERE p_queue_id IS NULL OR p.queue_id = p_queue_id
    ORDER BY p.id
    ON CONFLICT (partition_id) DO UPDATE
    SET queue_id = excluded.queue_id,
        segments_floor = '-infinity',
        txns_floor = '-infinity',
        look_xid = excluded.look_xid,
        pinned_since = NULL,
        pinned_group = NULL,
        pinned_offset = NULL;
    GET DIAGNOSTICS v_count = ROW_COUNT;
    RETURN v_count;
END
$qretention$
