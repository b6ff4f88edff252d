-- signature: event_prune_hold_v1(text, bigint[], int)
--
-- Locks the deliveries of events that the transaction has locked.
--
-- p_arm     'succeeded', 'settled', 'own_window', 'default_window'
-- p_events  the events
-- p_most    how many at most
--
-- Columns: ids, events and terminal, one entry a delivery that could be locked; terminal: by the
-- arm's measure nothing is owed by it, as of its newest version.
-- Locks: the deliveries FOR UPDATE, those that are locked left out. Nothing is waited for, so their
-- order does not matter, and the one of the index spares reading all before the first is locked.
CREATE OR REPLACE FUNCTION @event@.event_prune_hold_v1(
    p_arm text,
    p_events bigint[],
    p_most int,
    OUT ids bigint[],
    OUT events bigint[],
    OUT terminal boolean[]
)
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
DECLARE
    v_terminal constant text[] := @event@.event_prune_terminal_v1(p_arm);
BEGIN
    SELECT
        COALESCE(array_agg(l.id), '{}'),
        COALESCE(array_agg(l.event_id), '{}'),
        COALESCE(array_agg((l.status = ANY (v_terminal)) IS TRUE), '{}')
    INTO ids, events, terminal
    FROM (
        SELECT d.id, d.event_id, d.status FROM @delivery_table@ AS d
        WHERE d.event_id = ANY (p_events)
        LIMIT p_most
        FOR UPDATE SKIP LOCKED
    ) AS l;
END
$qretention$
