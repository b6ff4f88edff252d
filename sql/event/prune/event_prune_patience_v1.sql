-- signature: event_prune_patience_v1()
--
-- The lock_timeout of a prune: 200 ms or half of deadlock_timeout, whichever is less, or a
-- session's own where that is shorter. A prune of another make, or whoever deletes what refers to an event,
-- may take locks in any order, and ours is to yield before the server has to choose. Locks: none.
CREATE OR REPLACE FUNCTION @event@.event_prune_patience_v1()
RETURNS text
LANGUAGE plpgsql
STABLE
SET search_path = pg_catalog, pg_temp
AS $qretention$
DECLARE
    v_longest constant interval := LEAST(
        NULLIF(current_setting('lock_timeout')::interval, interval '0'),
        interval '200 ms',
        current_setting('deadlock_timeout')::interval / 2);
BEGIN
    RETURN GREATEST(extract(milliseconds FROM v_longest)::int, 1)::text;
END
$qretention$
