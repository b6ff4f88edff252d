-- signature: event_prune_patience_v1(int)
--
-- The lock_timeout of a prune: 200 ms or half of deadlock_timeout, whichever is less, or a
-- session's own where that is shorter. A prune of another make, or whoever deletes what refers to an event,
-- may take locks in any order, and ours is to yield before the server has to choose.
--
-- p_part  1: all of it; 4: a quarter, at least 1 ms. Locks: none.
CREATE OR REPLACE FUNCTION @event@.event_prune_patience_v1(p_part int)
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
    RETURN GREATEST(extract(milliseconds FROM v_longest)::int / p_part, 1)::text;
END
$qretention$
