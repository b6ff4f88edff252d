-- signature: log_txns_purge_step_v2(uuid, timestamptz, int)
--
-- log_txns_purge_step_v1 that takes its lock last: sidecar rows older than p_cutoff go, lowest
-- first, at most p_max_rows a step.
--
-- Returns {"deleted": rows deleted, "new_txns_start": the sidecar's watermark after the step,
-- "done": nothing deletable is left}. Locks, transaction and errors: log_txns_purge_core_v2.
CREATE OR REPLACE FUNCTION @log@.log_txns_purge_step_v2(
    p_pid uuid,
    p_cutoff timestamptz,
    p_max_rows int
)
RETURNS jsonb
LANGUAGE sql
VOLATILE
SET search_path = pg_catalog, pg_temp
AS $qretention$
    SELECT jsonb_build_object('deleted', s.deleted, 'new_txns_start', s.watermark, 'done', s.done)
    FROM @log@.log_txns_purge_core_v2(p_pid, p_cutoff, p_max_rows, false) AS s
$qretention$
