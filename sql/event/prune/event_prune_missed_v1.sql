-- signature: event_prune_missed_v1(text, timestamptz, timestamptz, bigint[], bigint[])
--
-- How many of these events are due by their own row and yet not among the locked ones: somebody
-- else holds them. What went with another prune, or is no longer due, is not counted.
--
-- Parameters as event_prune_batch_v1; p_events  those that were locked. Locks: none.
CREATE OR REPLACE FUNCTION @event@.event_prune_missed_v1(
    p_arm text,
    p_now timestamptz,
    p_cutoff timestamptz,
    p_ids bigint[],
    p_events bigint[]
)
RETURNS int
LANGUAGE plpgsql
VOLATILE
SET search_path = pg_catalog, pg_temp
SET row_security = off
SET enable_seqscan = off
SET enable_bitmapscan = off
SET max_parallel_workers_per_gather = 0
SET jit = off
AS $qretention$
BEGIN
    RETURN (
        SELECT count(*) FROM @event_table@ AS e
        WHERE e.id = ANY (p_ids) AND e.id <> ALL (p_events)
            AND @event@.event_prune_due_v1(p_arm, p_now, p_cutoff, e.recorded_at,
                e.retention_seconds, e.delete_when)
    );
END
$qretention$
