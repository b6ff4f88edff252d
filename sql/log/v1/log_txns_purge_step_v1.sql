-- signature: log_txns_purge_step_v1(uuid, timestamptz, int)
--
-- One bounded step of the sidecar purge on one partition: the hashes of messages too old to matter
-- to the deduplication probe or to a late ack.
--
-- p_pid       the partition
-- p_cutoff    older rows go; NULL: nothing does
-- p_max_rows  most rows to delete; NULL and anything below 1 count as 1
--
-- Returns {"deleted": rows deleted, "new_txns_start": the watermark after the step, "done": nothing
-- deletable is left}. A partition that does not exist: 0, 0, true.
--
-- Only a prefix from txns_start goes, as in log_retention_step_v1, whose planner settings and
-- bounds apply too. The watermark moves under the lock that pushes take, so that the lower bound of
-- their probe stands still within any push. No history row: nothing that a reader counts has gone.
--
-- Locks: the partition row FOR UPDATE as the first statement, until the transaction ends. One
-- transaction; writes nothing but that lock when nothing is deletable.
CREATE OR REPLACE FUNCTION @log@.log_txns_purge_step_v1(
    p_pid uuid,
    p_cutoff timestamptz,
    p_max_rows int
)
RETURNS jsonb
LANGUAGE plpgsql
VOLATILE
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
AS $qretention$
DECLARE
    v_limit constant bigint := GREATEST(COALESCE(p_max_rows, 1), 1);
    v_txns_start bigint;
    v_new_txns_start bigint;
    v_count bigint := 0;
    v_last_base bigint;
    v_done boolean := true;
    v_deleted bigint;
    v_row record;
BEGIN
    SELECT p.txns_start INTO v_txns_start
    FROM @log@.log_partitions AS p
    WHERE p.id = p_pid
    FOR UPDATE;
    IF NOT FOUND THEN
        RETURN jsonb_build_object('deleted', 0, 'new_txns_start', 0, 'done', true);
    END IF;
    IF p_cutoff IS NULL THEN
        RETURN jsonb_build_object('deleted', 0, 'new_txns_start', v_txns_start, 'done', true);
    END IF;

    v_new_txns_start := v_txns_start;
    FOR v_row IN
        SELECT t.base_offset, t.end_offset, t.created_at
        FROM @log@.log_txns AS t
        WHERE t.partition_id = p_pid
          AND t.base_offset >= v_txns_start
        ORDER BY t.base_offset
        LIMIT v_limit + 1
    LOOP
        IF NOT COALESCE(v_row.created_at < p_cutoff, false) THEN
            EXIT;
        END IF;
        IF v_count = v_limit THEN
            v_done := false;
            EXIT;
        END IF;
        v_count := v_count + 1;
        v_last_base := v_row.base_offset;
        v_new_txns_start := v_row.end_offset + 1;
    END LOOP;
    IF v_count = 0 THEN
        RETURN jsonb_build_object('deleted', 0, 'new_txns_start', v_txns_start, 'done', true);
    END IF;

    DELETE FROM @log@.log_txns AS t
    WHERE t.partition_id = p_pid
      AND t.base_offset >= v_txns_start
      AND t.base_offset <= v_last_base;
    GET DIAGNOSTICS v_deleted = ROW_COUNT;
    IF v_deleted = 0 THEN
        RETURN jsonb_build_object('deleted', 0, 'new_txns_start', v_txns_start, 'done', true);
    END IF;

    UPDATE @log@.log_partitions AS p
    SET txns_start = v_new_txns_start
    WHERE p.id = p_pid
      AND p.txns_start < v_new_txns_start;
    RETURN jsonb_build_object(
        'deleted', v_deleted, 'new_txns_start', v_new_txns_start, 'done', v_done);
END
$qretention$
