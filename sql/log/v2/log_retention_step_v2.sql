-- signature: log_retention_step_v2(uuid, timestamptz, timestamptz, int, text)
--
-- log_retention_step_v1 that takes its lock last: same parameters, same rules, same result.
--
-- Returns {"deleted": segments deleted, "new_log_start": the watermark after the step,
-- "done": nothing deletable is left}. Locks, transaction and errors: log_retention_core_v2.
CREATE OR REPLACE FUNCTION @log@.log_retention_step_v2(
    p_pid uuid,
    p_all_cutoff timestamptz,
    p_completed_cutoff timestamptz,
    p_max_rows int,
    p_history_type text DEFAULT NULL
)
RETURNS jsonb
LANGUAGE sql
VOLATILE
SET search_path = pg_catalog, pg_temp
AS $qretention$
    SELECT jsonb_build_object('deleted', s.deleted, 'new_log_start', s.watermark, 'done', s.done)
    FROM @log@.log_retention_core_v2(p_pid, p_all_cutoff, p_completed_cutoff, p_max_rows,
        p_history_type, false) AS s
$qretention$
