-- signature: event_prune_careful_v1(text, bigint[], int)
--
-- Picks apart locked events of which not every delivery may go: deletes the deliveries of those on
-- which nothing is owed and nobody is at work.
--
-- p_arm     'succeeded', 'settled', 'own_window', 'default_window'
-- p_events  the events
-- p_rows    most deliveries to lock
--
-- Columns: gone, the ids of events that are now without deliveries and to be deleted; skipped,
-- events of which some delivery is locked by somebody else; deliveries, receivers and newest as
-- event_prune_take_v1.
--
-- 1. The deliveries are locked. One that a replay, a requeue or a claim is at work on is locked by
--    it, so not by us; whoever comes later waits for us and finds nothing. A lock returns the
--    newest version of a row, and it stays that: its status is the one that counts.
-- 2. A new statement, so with a snapshot of its own, looks again: an event goes if the deliveries
--    it has now are the ones locked, and every one is terminal. Locked rows do not go away, so as
--    many deliveries as were locked are the same ones.
-- 3. The deliveries go by their locked ids.
--
-- Nothing is waited for.
CREATE OR REPLACE FUNCTION @event@.event_prune_careful_v1(
    p_arm text,
    p_events bigint[],
    p_rows int,
    OUT gone bigint[],
    OUT skipped int,
    OUT deliveries bigint,
    OUT receivers text[],
    OUT newest timestamptz[]
)
LANGUAGE plpgsql
VOLATILE
SET search_path = pg_catalog, pg_temp
SET jit = off
AS $qretention$
DECLARE
    v_held bigint[];        -- locked deliveries,
    v_held_events bigint[]; -- the event of each,
    v_terminal boolean[];   -- and whether nothing is owed by it
BEGIN
    SELECT h.ids, h.events, h.terminal INTO v_held, v_held_events, v_terminal
    FROM @event@.event_prune_hold_v1(p_arm, p_events, p_rows) AS h;
    SELECT
        COALESCE(array_agg(e.id) FILTER (WHERE e.there = e.held AND e.terminal = e.held), '{}'),
        count(*) FILTER (WHERE e.there > e.held)
    INTO gone, skipped
    FROM @event@.event_prune_count_v1(p_events, v_held_events, v_terminal) AS e;
    v_held := ARRAY(
        SELECT h.id FROM unnest(v_held, v_held_events) AS h (id, event_id)
        WHERE h.event_id IN (SELECT g.id FROM unnest(gone) AS g (id))
    );
    SELECT d.deliveries, d.receivers, d.newest INTO deliveries, receivers, newest
    FROM @event@.event_prune_deliveries_v1(v_held) AS d;
END
$qretention$
