-- signature: event_prune_batch_v1(text, timestamptz, timestamptz, bigint[])
--
-- Deletes those of these events that are still due, with their deliveries: the part of the prune that
-- nothing owed gets past, whatever runs beside it.
--
-- p_arm     'succeeded', 'settled', 'own_window', 'default_window'
-- p_now     windows of an event's own that passed before it are due
-- p_cutoff  what was recorded before it is past the default window
-- p_ids     the candidates, however old the look that found them
--
-- Columns: gone, the ids of the deleted events; deliveries, how many rows went with them; skipped,
-- events of which some row is locked by somebody else.
--
-- 1. The events are locked, if they are due by their own row. From here on no delivery can be added to
--    them: the check of its foreign key wants the event's key and waits for us (where the key is
--    deferred, at its writer's commit), then fails. Anything weaker than FOR UPDATE lets it through.
-- 2. Their deliveries are locked. One that a replay, a requeue or a claim is at work on is locked by
--    it, so not by us; whoever comes later waits for us and finds nothing.
-- 3. A new statement, so with a snapshot of its own, looks again: an event goes if the deliveries
--    it has now are the ones locked, and every one is terminal.
-- 4. The deliveries go by their locked ids, then the events; then the last successes are recorded.
--
-- Nothing is waited for in 1 to 3, so prunes that come from different ends pass each other. The only
-- wait is at the end, see event_prune_success_v1. READ COMMITTED only; the caller sees to it.
CREATE OR REPLACE FUNCTION @event@.event_prune_batch_v1(
    p_arm text,
    p_now timestamptz,
    p_cutoff timestamptz,
    p_ids bigint[],
    OUT gone bigint[],
    OUT deliveries bigint,
    OUT skipped int
)
LANGUAGE plpgsql
VOLATILE
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_nestloop = off
SET max_parallel_workers_per_gather = 0
SET jit = off
AS $qretention$
DECLARE
    v_terminal constant text[] := CASE p_arm
        WHEN 'succeeded' THEN '{succeeded,cancelled}'
        ELSE '{succeeded,cancelled,dead,orphaned}' END;
    v_events bigint[];      -- locked
    v_held bigint[];        -- locked deliveries,
    v_held_events bigint[]; -- and the event of each
    v_receivers text[];
    v_newest timestamptz[];
BEGIN
    gone := '{}';
    deliveries := 0;
    skipped := 0;

    v_events := @event@.event_prune_lock_v1(p_arm, p_now, p_cutoff, p_ids);
    IF cardinality(v_events) < cardinality(p_ids) THEN
        -- Not ours and still there: locked. The others went with another prune.
        SELECT count(*) INTO skipped
        FROM @event_table@ AS e
        WHERE e.id = ANY (p_ids) AND e.id <> ALL (v_events);
    END IF;
    IF cardinality(v_events) = 0 THEN
        RETURN;
    END IF;

    SELECT COALESCE(array_agg(l.id), '{}'), COALESCE(array_agg(l.event_id), '{}')
    INTO v_held, v_held_events
    FROM (
        SELECT d.id, d.event_id FROM @delivery_table@ AS d
        WHERE d.event_id = ANY (v_events)
        ORDER BY d.id
        FOR UPDATE SKIP LOCKED
    ) AS l;

    SELECT
        COALESCE(array_agg(e.id) FILTER (WHERE e.there = e.held AND e.terminal = e.there), '{}'),
        skipped + count(*) FILTER (WHERE e.there > e.held)
    INTO gone, skipped
    FROM (
        SELECT
            event.id,
            COALESCE(seen.there, 0) AS there,
            COALESCE(seen.terminal, 0) AS terminal,
            COALESCE(held.held, 0) AS held
        FROM unnest(v_events) AS event (id)
        LEFT JOIN (
            SELECT d.event_id, count(*) AS there,
                count(*) FILTER (WHERE d.status = ANY (v_terminal)) AS terminal
            FROM @delivery_table@ AS d
            WHERE d.event_id = ANY (v_events)
            GROUP BY d.event_id
        ) AS seen ON seen.event_id = event.id
        LEFT JOIN (
            SELECT h.event_id, count(*) AS held
            FROM unnest(v_held_events) AS h (event_id)
            GROUP BY h.event_id
        ) AS held ON held.event_id = event.id
    ) AS e;
    IF cardinality(gone) = 0 THEN
        RETURN;
    END IF;
    IF cardinality(gone) < cardinality(v_events) THEN
        v_held := ARRAY(
            SELECT h.id FROM unnest(v_held, v_held_events) AS h (id, event_id)
            WHERE h.event_id IN (SELECT g.id FROM unnest(gone) AS g (id))
        );
    END IF;

    SELECT d.deliveries, d.receivers, d.newest INTO deliveries, v_receivers, v_newest
    FROM @event@.event_prune_deliveries_v1(v_held) AS d;
    DELETE FROM @event_table@ AS e WHERE e.id = ANY (gone);
    PERFORM @event@.event_prune_success_v1(v_receivers, v_newest);
END
$qretention$
