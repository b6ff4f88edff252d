-- signature: event_prune_unknown_v1(text)
--
-- What of an outbox is in no vocabulary of the prune's: policies (those events go at the default
-- window) and statuses (those deliveries are owed, and keep their events).
--
-- p_arm  'default_window' counts events with such a policy, 'settled' deliveries with such a status,
--        the others nothing, so that each is counted once
-- Returns the number: of events up to 1000; of deliveries among the first 256 unfinished ones, in
-- the order of their events: what is stuck for good is oldest. A status that is NULL is in no index
-- of unfinished ones and not among them.
-- Locks: none.
CREATE OR REPLACE FUNCTION @event@.event_prune_unknown_v1(p_arm text)
RETURNS int
LANGUAGE plpgsql
STABLE
SET search_path = pg_catalog, pg_temp
SET row_security = off
SET enable_seqscan = off
SET enable_bitmapscan = off
SET max_parallel_workers_per_gather = 0
SET jit = off
AS $qretention$
DECLARE
    v_most constant int := 1000;
    v_few constant int := 256;
    v_known constant text[] :=
        '{pending,failed,claimed,succeeded,dead,orphaned,cancelled}';
BEGIN
    IF p_arm = 'default_window' THEN
        -- Around the two known ones, so that the events with those are not read.
        RETURN (
            SELECT count(*) FROM (
                (SELECT FROM @event_table@ AS e
                WHERE e.delete_when <> '' AND e.delete_when < 'settled' LIMIT v_most)
                UNION ALL
                (SELECT FROM @event_table@ AS e
                WHERE e.delete_when <> '' AND e.delete_when > 'settled'
                    AND e.delete_when < 'succeeded' LIMIT v_most)
                UNION ALL
                (SELECT FROM @event_table@ AS e
                WHERE e.delete_when <> '' AND e.delete_when > 'succeeded' LIMIT v_most)
                LIMIT v_most
            ) AS unknown
        );
    ELSIF p_arm = 'settled' THEN
        RETURN (
            SELECT count(*) FILTER (WHERE unfinished.status <> ALL (v_known)) FROM (
                SELECT d.status FROM @delivery_table@ AS d
                WHERE d.status <> 'succeeded'
                ORDER BY d.event_id
                LIMIT v_few
            ) AS unfinished
        );
    END IF;
    RETURN 0;
END
$qretention$
