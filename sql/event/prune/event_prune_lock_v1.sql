-- signature: event_prune_lock_v1(text, timestamptz, timestamptz, bigint[])
--
-- Locks those of these events that are due by their own row, and returns their ids. What locks a
-- row looks at its newest version, so a policy or window that was changed meanwhile counts as
-- changed, and stays as it is until the transaction ends. Their deliveries are another question.
--
-- Parameters as event_prune_batch_v1. A row whose date or window cannot be reckoned with is not
-- due. Locks: the events FOR UPDATE, in the order of their ids, those that are locked left out.
CREATE OR REPLACE FUNCTION @event@.event_prune_lock_v1(
    p_arm text,
    p_now timestamptz,
    p_cutoff timestamptz,
    p_ids bigint[]
)
RETURNS bigint[]
LANGUAGE plpgsql
VOLATILE
SET search_path = pg_catalog, pg_temp
SET row_security = off
SET enable_seqscan = off
SET enable_bitmapscan = off
SET max_parallel_workers_per_gather = 0
SET plan_cache_mode = force_generic_plan
SET jit = off
AS $qretention$
BEGIN
    RETURN ARRAY(
        SELECT e.id
        FROM @event_table@ AS e
        WHERE e.id = ANY (p_ids)
            AND @event@.event_prune_due_v1(p_arm, p_now, p_cutoff, e.recorded_at,
                e.retention_seconds, e.delete_when)
        ORDER BY e.id
        FOR UPDATE SKIP LOCKED
    );
END
$qretention$
