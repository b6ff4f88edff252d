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
-- first alone has too many deliveries; events and deliveries, how many rows went; skipped, due
-- events of which some row is locked by somebody else.
--
-- 1. The events are locked, if they are due by their own row. From here on no delivery can be added
--    to them: the check of its foreign key wants the event's key and waits for us (where the key is
--    deferred, at its writer's commit), then fails. Anything weaker than FOR UPDATE would let it
--    through.
-- 2. A new statement, so with a snapshot of its own, counts their deliveries, which are all there
--    will be, and notes the last successes.
-- 3. Those by which nothing is owed are deleted, each as of its newest version, and no row of
--    somebody else's is waited for longer than a moment. If as many went as there were, none is
--    left, owed or not.
-- 4. Otherwise that is undone: some are owed after all, or a replay, a requeue or a claim is at
--    work on one. Then event_prune_careful_v1 picks the events apart.
-- 5. The events go; then the last successes are recorded, and deferred constraints are checked,
--    so that an event which something else refers to fails here and not at the commit.
--
-- Nothing is waited for in 1 and 2, so prunes that come from different ends pass each other. The
-- waits are that moment, and at the end event_prune_success_v1's. READ COMMITTED only; the caller
-- sees to it.
CREATE OR REPLACE FUNCTION @event@.event_prune_batch_v1(
    p_arm text,
    p_now timestamptz,
    p_cutoff timestamptz,
    p_ids bigint[],
    p_rows int,
    OUT taken int,
    OUT events int,
    OUT deliveries bigint,
    OUT skipped int
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
    v_few constant int := 64;
    v_events bigint[];  -- locked
    v_there record;     -- their deliveries
    v_gone record;
BEGIN
    taken := cardinality(p_ids);
    events := 0;
    deliveries := 0;
    skipped := 0;

    v_events := @event@.event_prune_lock_v1(p_arm, p_now, p_cutoff, p_ids);
    SELECT t.* INTO v_there
    FROM @event@.event_prune_there_v1(v_events, p_rows - cardinality(v_events) + 1) AS t;
    IF cardinality(v_events) + v_there.deliveries > p_rows THEN
        -- They do not all fit. Of those that do only the ones that were locked before they were
        -- counted: another may have got more deliveries since, and some would be read by nobody.
        taken := @event@.event_prune_fit_v1(p_ids, p_rows);
        IF taken = 0 THEN
            RETURN;
        END IF;
        v_events := ARRAY(
            SELECT l.id FROM unnest(v_events) AS l (id) WHERE l.id = ANY (p_ids[1:taken]));
        SELECT t.* INTO v_there FROM @event@.event_prune_there_v1(v_events, p_rows) AS t;
    END IF;
    IF cardinality(v_events) < taken THEN
        skipped := @event@.event_prune_missed_v1(p_arm, p_now, p_cutoff, p_ids[1:taken], v_events);
    END IF;

    BEGIN
        -- A fan-out has too many receivers to compare each success with.
        -- QR008 is caught below and seen by nobody.
        IF cardinality(v_there.receivers) > v_few OR v_there.deliveries <> (
            SELECT @event@.event_prune_take_v1(p_arm, v_events, v_there.receivers, v_there.newest))
        THEN
            RAISE EXCEPTION 'not all deliveries of the batch are to go' USING ERRCODE = 'QR008';
        END IF;
    EXCEPTION WHEN lock_not_available OR deadlock_detected OR SQLSTATE 'QR008' THEN
        SELECT c.* INTO v_gone FROM @event@.event_prune_careful_v1(p_arm, v_events, p_rows) AS c;
        v_there := v_gone;
        v_events := v_gone.gone;
        skipped := skipped + v_gone.skipped;
    END;
    IF cardinality(v_events) = 0 THEN
        RETURN;
    END IF;

    deliveries := v_there.deliveries;
    DELETE FROM @event_table@ AS e WHERE e.id = ANY (v_events);
    GET DIAGNOSTICS events = ROW_COUNT;
    IF events < cardinality(v_events) THEN
        -- They are locked: only a trigger of the host's can do that, and it is to keep deliveries too.
        RAISE EXCEPTION 'a trigger keeps it' USING ERRCODE = 'triggered_data_change_violation';
    END IF;
    PERFORM @event@.event_prune_success_v1(v_there.receivers, v_there.newest);
    SET CONSTRAINTS ALL IMMEDIATE;
END
$qretention$
