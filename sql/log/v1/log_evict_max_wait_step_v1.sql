-- signature: log_evict_max_wait_step_v1(uuid, timestamptz, int)
--
-- One bounded step of max-wait eviction: data older than p_cutoff goes for every group, consumed or
-- not, leased or not. This is data loss by design of the option; a cursor left behind resumes at
-- the next offset that exists. NULL cutoff: nothing.
--
-- The retention step with rule 2 off and its own name in the history, so that there is one path
-- that deletes. Parameters, result keys, locks and transaction: as log_retention_step_v1.
CREATE OR REPLACE FUNCTION @log@.log_evict_max_wait_step_v1(
    p_pid uuid,
    p_cutoff timestamptz,
    p_max_rows int
)
RETURNS jsonb
LANGUAGE plpgsql
VOLATILE
SET search_path = pg_catalog, pg_temp
AS $qretention$
BEGIN
    RETURN @log@.log_retention_step_v1(
        p_pid, p_cutoff, NULL::timestamptz, p_max_rows, 'max_wait_time_eviction'::text);
END
$qretention$
