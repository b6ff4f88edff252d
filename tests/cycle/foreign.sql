-- Somebody else's versions of the contract functions, as a broker may bring them along. Simple on
-- purpose: one look for the boundary, one delete. Schema queen, run as one script.

CREATE FUNCTION queen.log_retention_boundary_v1(
    p_partition_id uuid, p_from bigint, p_cutoff timestamptz)
RETURNS bigint LANGUAGE sql AS $$
    SELECT COALESCE(
        (SELECT min(base_offset) FROM queen.log_segments
         WHERE partition_id = p_partition_id AND base_offset >= p_from AND created_at >= p_cutoff),
        (SELECT max(end_offset) + 1 FROM queen.log_segments
         WHERE partition_id = p_partition_id AND base_offset >= p_from),
        p_from)
$$;

CREATE FUNCTION queen.log_retention_step_v1(
    p_pid uuid, p_all_cutoff timestamptz, p_completed_cutoff timestamptz, p_max_rows int,
    p_history_type text DEFAULT NULL)
RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    v_start bigint;
    v_all bigint;
    v_completed bigint;
    v_slowest bigint;
    v_last bigint;
    v_new bigint;
    v_deleted int;
BEGIN
    SELECT log_start INTO v_start FROM queen.log_partitions WHERE id = p_pid FOR UPDATE;
    IF NOT FOUND THEN
        RETURN '{"deleted": 0, "new_log_start": 0, "done": true}';
    END IF;
    v_all := v_start;
    v_completed := v_start;
    IF p_all_cutoff IS NOT NULL THEN
        v_all := queen.log_retention_boundary_v1(p_pid, v_start, p_all_cutoff);
    END IF;
    SELECT min(committed) + 1 INTO v_slowest FROM queen.log_consumers WHERE partition_id = p_pid;
    IF p_completed_cutoff IS NOT NULL AND v_slowest IS NOT NULL THEN
        v_completed := LEAST(
            queen.log_retention_boundary_v1(p_pid, v_start, p_completed_cutoff), v_slowest);
    END IF;
    SELECT max(base_offset), max(end_offset) + 1, count(*) INTO v_last, v_new, v_deleted
    FROM (SELECT base_offset, end_offset FROM queen.log_segments
          WHERE partition_id = p_pid AND base_offset >= v_start
            AND end_offset < GREATEST(v_all, v_completed)
          ORDER BY base_offset LIMIT GREATEST(p_max_rows, 1)) AS batch;
    IF v_deleted = 0 THEN
        RETURN jsonb_build_object('deleted', 0, 'new_log_start', v_start, 'done', true);
    END IF;
    DELETE FROM queen.log_segments
    WHERE partition_id = p_pid AND base_offset BETWEEN v_start AND v_last;
    UPDATE queen.log_partitions SET log_start = v_new WHERE id = p_pid;
    INSERT INTO queen.retention_history (partition_id, messages_deleted, retention_type)
    VALUES (p_pid, v_new - v_start, COALESCE(p_history_type,
        CASE WHEN v_completed > v_all THEN 'completed_retention' ELSE 'retention' END));
    -- Says "not done" once too often, as real ones do: only the next call finds out.
    RETURN jsonb_build_object('deleted', v_deleted, 'new_log_start', v_new, 'done', false);
END
$$;

CREATE FUNCTION queen.log_txns_purge_step_v1(p_pid uuid, p_cutoff timestamptz, p_max_rows int)
RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    v_start bigint;
    v_last bigint;
    v_new bigint;
    v_deleted int;
BEGIN
    SELECT txns_start INTO v_start FROM queen.log_partitions WHERE id = p_pid FOR UPDATE;
    IF NOT FOUND THEN
        RETURN '{"deleted": 0, "new_txns_start": 0, "done": true}';
    END IF;
    SELECT max(base_offset), max(end_offset) + 1, count(*) INTO v_last, v_new, v_deleted
    FROM (SELECT base_offset, end_offset FROM queen.log_txns AS t
          WHERE partition_id = p_pid AND base_offset >= v_start AND created_at < p_cutoff
            AND NOT EXISTS (SELECT FROM queen.log_txns AS f WHERE f.partition_id = p_pid
                AND f.base_offset BETWEEN v_start AND t.base_offset AND f.created_at >= p_cutoff)
          ORDER BY base_offset LIMIT GREATEST(p_max_rows, 1)) AS batch;
    IF v_deleted = 0 THEN
        RETURN jsonb_build_object('deleted', 0, 'new_txns_start', v_start, 'done', true);
    END IF;
    DELETE FROM queen.log_txns
    WHERE partition_id = p_pid AND base_offset BETWEEN v_start AND v_last;
    UPDATE queen.log_partitions SET txns_start = v_new WHERE id = p_pid;
    RETURN jsonb_build_object('deleted', v_deleted, 'new_txns_start', v_new, 'done', false);
END
$$;

CREATE FUNCTION queen.log_evict_max_wait_step_v1(p_pid uuid, p_cutoff timestamptz, p_max_rows int)
RETURNS jsonb LANGUAGE sql AS $$
    SELECT queen.log_retention_step_v1(p_pid, p_cutoff, NULL, p_max_rows, 'max_wait_time_eviction')
$$;

CREATE FUNCTION queen.log_partition_dead_v1(p_pid uuid, p_cutoff timestamptz)
RETURNS boolean LANGUAGE sql AS $$
    SELECT p.created_at < p_cutoff AND p.last_write_at < p_cutoff
        AND NOT EXISTS (SELECT FROM queen.log_segments WHERE partition_id = p.id)
        AND NOT EXISTS (SELECT FROM queen.log_dlq WHERE partition_id = p.id)
        AND NOT EXISTS (SELECT FROM queen_streams.state WHERE partition_id = p.id)
        AND NOT EXISTS (SELECT FROM queen.log_consumers c WHERE c.partition_id = p.id
            AND (c.batch_end IS NOT NULL AND c.lease_expires_at > now()
                OR GREATEST(c.created_at, c.lease_acquired_at, c.lease_expires_at) >= p_cutoff))
    FROM queen.log_partitions AS p WHERE p.id = p_pid
$$;

CREATE FUNCTION queen.log_partition_cleanup_step_v1(p_cutoff timestamptz, p_max_rows int)
RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    v_ids uuid[];
    v_dead uuid[];
BEGIN
    v_ids := ARRAY(SELECT id FROM queen.log_partitions
        WHERE queen.log_partition_dead_v1(id, p_cutoff)
        ORDER BY id LIMIT GREATEST(p_max_rows, 1) FOR UPDATE SKIP LOCKED);
    v_dead := ARRAY(SELECT id FROM unnest(v_ids) AS id
        WHERE queen.log_partition_dead_v1(id, p_cutoff));
    DELETE FROM queen.log_txns WHERE partition_id = ANY (v_dead);
    INSERT INTO queen.retention_history (partition_id, retention_type)
    SELECT id, '__partition_deleted__' FROM unnest(v_dead) AS id;
    DELETE FROM queen.log_partitions WHERE id = ANY (v_dead);
    RETURN jsonb_build_object(
        'deleted', cardinality(v_dead), 'done', cardinality(v_ids) < p_max_rows);
END
$$;

CREATE FUNCTION queen.cleanup_worker_metrics_v1(p_days int)
RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
    RETURN '{"deletedMetrics": 0, "deletedLagMetrics": 0, "deletedParkedReplica": 0,
        "deletedRetentionHistory": 0}';
END
$$;
