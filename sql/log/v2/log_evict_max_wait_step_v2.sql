-- signature: log_evict_max_wait_step_v2(uuid, timestamptz, int)
--
-- log_evict_max_wait_step_v1 that takes its lock last: segments older than p_cutoff go, consumed or
-- not, for every group. At most p_max_rows a step.
--
-- Returns {"deleted": segments deleted, "new_log_start": the watermark after the step,
-- "done": nothing deletable is left}. Locks, transaction and errors: log_retention_core_v2.
CREATE OR REPLACE FUNCTION @log@.log_evict_max_wait_step_v2(
    p_pid uuid,
    p_cutoff timestamptz,
    p_max_rows int
)
RETURNS jsonb
LANGUAGE sql
VOLATILE
SET search_path = pg_catalog, pg_temp
AS $qretention$
    SELECT jsonb_build_object('deleted', s.deleted, 'new_log_start', s.watermark, 'done', s.done)
    FROM @log@.log_retention_core_v2(p_pid, p_cutoff, NULL, p_max_rows, 'max_wait_time_eviction',
        false) AS s
$qretention$
