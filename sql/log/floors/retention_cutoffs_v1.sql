-- signature: retention_cutoffs_v1(timestamptz, uuid[])
--
-- The cutoffs of queues at a clock: what the work list of mode `scan` computes for each partition.
--
-- p_clock      the clock of the cycle
-- p_queue_ids  the queues; NULL: all
--
-- Columns: queue_id, all_cutoff, completed_cutoff, txns_cutoff, max_wait_cutoff; NULL: rule off. A
-- window is in force when it is positive and its subtraction stays within what a timestamp can
-- hold: v_reach is the number of seconds from the first timestamp there is to the clock.
--
-- Locks: none. Read-only.
CREATE OR REPLACE FUNCTION @log@.retention_cutoffs_v1(p_clock timestamptz, p_queue_ids uuid[])
RETURNS TABLE (
    queue_id uuid,
    all_cutoff timestamptz,
    completed_cutoff timestamptz,
    txns_cutoff timestamptz,
    max_wait_cutoff timestamptz
)
LANGUAGE plpgsql
STABLE
ROWS 100
SET search_path = pg_catalog, pg_temp
SET jit = off
SET plan_cache_mode = force_generic_plan
AS $qretention$
DECLARE
    v_reach constant bigint := date_part('epoch', p_clock) + 210866803200;
BEGIN
    RETURN QUERY
    SELECT q.id,
           CASE WHEN q.retention_enabled
                 AND q.retention_seconds > 0 AND q.retention_seconds < v_reach
                THEN p_clock - make_interval(secs => q.retention_seconds) END,
           CASE WHEN q.retention_enabled
                 AND q.completed_retention_seconds > 0 AND q.completed_retention_seconds < v_reach
                THEN p_clock - make_interval(secs => q.completed_retention_seconds) END,
           CASE WHEN GREATEST(q.dedup_window_seconds, q.completed_retention_seconds, 900) < v_reach
                THEN p_clock - make_interval(secs =>
                     GREATEST(q.dedup_window_seconds, q.completed_retention_seconds, 900)) END,
           CASE WHEN q.max_wait_time_seconds > 0 AND q.max_wait_time_seconds < v_reach
                THEN p_clock - make_interval(secs => q.max_wait_time_seconds) END
    FROM @log@.queues AS q
    WHERE p_queue_ids IS NULL OR q.id = ANY (p_queue_ids);
END
$qretention$
