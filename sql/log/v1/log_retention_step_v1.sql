-- signature: log_retention_step_v1(uuid, timestamptz, timestamptz, int, text)
--
-- One bounded step of segment retention on one partition: whole segments only, lowest first, at
-- most p_max_rows of them.
--
-- p_pid               the partition
-- p_all_cutoff        rule 1: older segments go whether consumed or not; NULL: rule off
-- p_completed_cutoff  rule 2: older segments go once every group has consumed them; NULL: rule off
-- p_max_rows          most segments to delete; NULL and anything below 1 count as 1
-- p_history_type      what to call it in retention_history; NULL: the rule that moved the boundary
--
-- Returns {"deleted": segments deleted, "new_log_start": the watermark after the step,
-- "done": nothing deletable is left}. A partition that does not exist: 0, 0, true.
--
-- Each rule allows a prefix of the log, counted from log_start, and the longer one goes: a fresh
-- segment stops its rule, whatever lies above it, so that no hole ever opens above log_start (a
-- clock that stepped back, a head dated in the future). A cutoff is exclusive: a segment of exactly
-- that age stays. Rule 2 needs a consumer row, and reaches the slowest group's cursor: the segment
-- that holds its next wanted offset stays whole. When both rules meet segments that only the other
-- allows, the next step goes on there.
--
-- Locks: the partition row FOR UPDATE as the first statement, until the transaction ends, which
-- excludes pushes and other steps. Consumer rows are read, not locked: a cursor moved back at the
-- same moment finds what is left, as if it had moved after the step. One transaction; writes
-- nothing but that lock when nothing is deletable. Reads at most p_max_rows + 1 segments, and stops
-- at the first that stays.
--
-- The planner settings make it walk the primary key from the watermark, also with statistics that
-- are missing or stale: a bitmap or a sort would read every segment above the watermark before the
-- first could be looked at, and never clean the index entries of what was deleted.
CREATE OR REPLACE FUNCTION @log@.log_retention_step_v1(
    p_pid uuid,
    p_all_cutoff timestamptz,
    p_completed_cutoff timestamptz,
    p_max_rows int,
    p_history_type text DEFAULT NULL
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
    v_log_start bigint;
    v_new_log_start bigint;
    v_consumed bigint;          -- the slowest group's cursor; NULL: not asked, or nobody consumes
    v_asked boolean := false;
    v_stale boolean := p_all_cutoff IS NOT NULL;            -- still in the prefix of rule 1
    v_completed boolean := p_completed_cutoff IS NOT NULL;  -- still in the prefix of rule 2
    v_in_stale boolean;
    v_in_completed boolean;
    v_count bigint := 0;
    v_last_base bigint;
    v_past_stale boolean := false;
    v_done boolean := true;
    v_deleted bigint;
    v_segment record;
BEGIN
    SELECT p.log_start INTO v_log_start
    FROM @log@.log_partitions AS p
    WHERE p.id = p_pid
    FOR UPDATE;
    IF NOT FOUND THEN
        RETURN jsonb_build_object('deleted', 0, 'new_log_start', 0, 'done', true);
    END IF;
    IF NOT (v_stale OR v_completed) THEN
        RETURN jsonb_build_object('deleted', 0, 'new_log_start', v_log_start, 'done', true);
    END IF;

    v_new_log_start := v_log_start;
    FOR v_segment IN
        SELECT s.base_offset, s.end_offset, s.created_at
        FROM @log@.log_segments AS s
        WHERE s.partition_id = p_pid
          AND s.base_offset >= v_log_start
        ORDER BY s.base_offset
        LIMIT v_limit + 1
    LOOP
        v_in_stale := COALESCE(v_segment.created_at < p_all_cutoff, false);
        v_in_completed := COALESCE(v_segment.created_at < p_completed_cutoff, false);
        IF v_in_completed AND NOT v_asked THEN
            v_asked := true;
            SELECT min(COALESCE(c.committed, -1)) INTO v_consumed
            FROM @log@.log_consumers AS c
            WHERE c.partition_id = p_pid;
        END IF;
        v_in_completed := v_in_completed AND COALESCE(v_segment.end_offset <= v_consumed, false);
        v_stale := v_stale AND v_in_stale;
        v_completed := v_completed AND v_in_completed;
        IF v_count = v_limit OR NOT (v_stale OR v_completed) THEN
            -- The row after the batch. The next step starts here with both rules afresh.
            v_done := v_count = 0 OR NOT (v_in_stale OR v_in_completed);
            EXIT;
        END IF;
        v_count := v_count + 1;
        v_last_base := v_segment.base_offset;
        v_new_log_start := v_segment.end_offset + 1;
        v_past_stale := NOT v_stale;
    END LOOP;
    IF v_count = 0 THEN
        RETURN jsonb_build_object('deleted', 0, 'new_log_start', v_log_start, 'done', true);
    END IF;

    DELETE FROM @log@.log_segments AS s
    WHERE s.partition_id = p_pid
      AND s.base_offset >= v_log_start
      AND s.base_offset <= v_last_base;
    GET DIAGNOSTICS v_deleted = ROW_COUNT;
    IF v_deleted = 0 THEN
        -- A trigger of the host's keeps them: so does the watermark.
        RETURN jsonb_build_object('deleted', 0, 'new_log_start', v_log_start, 'done', true);
    END IF;

    UPDATE @log@.log_partitions AS p
    SET log_start = v_new_log_start
    WHERE p.id = p_pid
      AND p.log_start < v_new_log_start;

    -- int4 is the column's type: a batch of more messages than that says as many as fit.
    INSERT INTO @log@.retention_history (partition_id, messages_deleted, retention_type)
    VALUES (
        p_pid,
        LEAST(v_new_log_start - v_log_start, 2147483647)::int,
        left(
            COALESCE(
                p_history_type,
                CASE WHEN v_past_stale THEN 'completed_retention' ELSE 'retention' END
            ),
            50
        )
    );
    RETURN jsonb_build_object(
        'deleted', v_deleted, 'new_log_start', v_new_log_start, 'done', v_done);
END
$qretention$
