-- signature: event_prune_batch_v1(text, timestamptz, timestamptz, bigint[], int)
--
-- Deletes those of these events that are still due, with their deliveries: the part of the prune
-- that nothing owed gets past, whatever runs beside it.
--
-- p_arm     'succeeded', 'settled', 'own_window', 'default_window'
-- p_now     windows of an event's own that passed before it are due
-- p_cutoff  what was recorded before it is past the default window
-- p_ids     the candidates, however old the look that found them
-- p_rows    most rows to delete, events and deliveries together; not fewer than the candidates
--
-- Columns: taken, how many of the candidates, from the first on, fitted and were dealt with, 0: the
-- first alone has too many deliveries; gone, the ids of the deleted events; deliveries, how many
-- rows went with them; skipped, events of which some row is locked by somebody else.
--
-- 1. The events are locked, if they are due by their own row. From here on no delivery can be added
--    to them: the check of its foreign key wants the event's key and waits for us (where the key is
--    deferred, at its writer's commit), then fails. Anything weaker than FOR UPDATE would let it
--    through.
-- 2. Their deliveries are locked. One that a replay, a requeue or a claim is at work on is locked
--    by it, so not by us; whoever comes later waits for us and finds nothing. A lock returns
--    the newest version of a row, and it stays that: its status is the one that counts.
-- 3. A new statement, so with a snapshot of its own, looks again: an event goes if the deliveries
--    it has now are the ones locked, and every one is terminal. Locked rows do not go away, so as
--    many deliveries as were locked are the same ones.
-- 4. The deliveries go by their locked ids, then the events; then the last successes are recorded.
--
-- Nothing is waited for in 1 to 3, so prunes that come from different ends pass each other. The
-- only wait is at the end, see event_prune_success_v1. READ COMMITTED only; the caller sees to it.
CREATE OR REPLACE FUNCTION @event@.event_prune_batch_v1(
    p_arm text,
    p_now timestamptz,
    p_cutoff timestamptz,
    p_ids bigint[],
    p_rows int,
    OUT taken int,
    OUT gone bigint[],
    OUT deliveries bigint,
    OUT skipped int
)
LANGUAGE plpgsql
VOLATILE
SET search_path = pg_catalog, pg_temp
SET row_security = off
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_nestloop = off
SET max_parallel_workers_per_gather = 0
SET plan_cache_mode = force_generic_plan
SET jit = off
AS $qretention$
DECLARE
    v_events bigint[];      -- locked
    v_held bigint[];        -- locked deliveries,
    v_held_events bigint[]; -- the event of each,
    v_terminal boolean[];   -- and whether nothing is owed by it
    v_there bigint;
    v_receivers text[];
    v_newest timestamptz[];
BEGIN
    taken := cardinality(p_ids);
    gone := '{}';
    deliveries := 0;
    skipped := 0;

    v_events := @event@.event_prune_lock_v1(p_arm, p_now, p_cutoff, p_ids);
    SELECT h.ids, h.events, h.terminal INTO v_held, v_held_events, v_terminal
    FROM @event@.event_prune_hold_v1(p_arm, v_events, p_rows - cardinality(v_events) + 1) AS h;
    IF cardinality(v_events) + cardinality(v_held) > p_rows THEN
        -- They do not all fit. Those that do once more, in their order; the other locks do no harm.
        taken := @event@.event_prune_fit_v1(p_ids, p_rows);
        IF taken = 0 THEN
            RETURN;
        END IF;
        v_events := ARRAY(
            SELECT e.id FROM unnest(v_events) AS e (id)
            WHERE e.id IN (SELECT f.id FROM unnest(p_ids[1:taken]) AS f (id))
        );
        SELECT h.ids, h.events, h.terminal INTO v_held, v_held_events, v_terminal
        FROM @event@.event_prune_hold_v1(p_arm, v_events, p_rows) AS h;
    END IF;
    IF cardinality(v_events) < taken THEN
        -- Not ours and still there: locked. The others went with another prune.
        SELECT count(*) INTO skipped
        FROM @event_table@ AS e
        WHERE e.id = ANY (p_ids[1:taken]) AND e.id <> ALL (v_events);
    END IF;

    SELECT count(*) INTO v_there FROM @delivery_table@ AS d WHERE d.event_id = ANY (v_events);
    IF v_there = cardinality(v_held) AND true = ALL (v_terminal) THEN
        gone := v_events;
    ELSE
        SELECT
            COALESCE(array_agg(e.id) FILTER (WHERE e.there = e.held AND e.terminal = e.held), '{}'),
            skipped + count(*) FILTER (WHERE e.there > e.held)
        INTO gone, skipped
        FROM @event@.event_prune_count_v1(v_events, v_held_events, v_terminal) AS e;
        v_held := ARRAY(
            SELECT h.id FROM unnest(v_held, v_held_events) AS h (id, event_id)
            WHERE h.event_id IN (SELECT g.id FROM unnest(gone) AS g (id))
        );
    END IF;
    IF cardinality(gone) = 0 THEN
        RETURN;
    END IF;

    SELECT d.deliveries, d.receivers, d.newest INTO deliveries, v_receivers, v_newest
    FROM @event@.event_prune_deliveries_v1(v_held) AS d;
    DELETE FROM @event_table@ AS e WHERE e.id = ANY (gone);
    PERFORM @event@.event_prune_success_v1(v_receivers, v_newest);
END
$qretention$
