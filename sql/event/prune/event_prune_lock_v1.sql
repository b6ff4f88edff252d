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
            AND CASE WHEN e.recorded_at >= '0001-01-01 00:00:00+00'::timestamptz
                    AND e.recorded_at < '9999-01-01 00:00:00+00'::timestamptz
                THEN CASE
                    WHEN p_arm IN ('succeeded', 'settled') THEN e.delete_when = p_arm
                    WHEN p_arm = 'own_window' THEN e.retention_seconds > 0
                        AND e.recorded_at + make_interval(secs => e.retention_seconds) < p_now
                    WHEN p_arm = 'default_window' THEN e.retention_seconds IS NULL
                        AND e.recorded_at < p_cutoff
                END
            END
        ORDER BY e.id
        FOR UPDATE SKIP LOCKED
    );
END
$qretention$
