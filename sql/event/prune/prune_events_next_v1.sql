-- signature: prune_events_next_v1(jsonb)
--
-- One step of prune_events_v1, and what the run looks like after it.
--
-- p_run  the state so far: prune_events_begin_v1's, then this function's
-- Columns: run, the state to go on with; done, there is nothing to go on with.
--
-- Locks and transaction: one step's, see event_prune_limited_v1. A step that loses a lock is undone
-- here, in a subtransaction, so the caller's transaction stays usable.
CREATE OR REPLACE FUNCTION @event@.prune_events_next_v1(
    p_run jsonb,
    OUT run jsonb,
    OUT done boolean
)
LANGUAGE plpgsql
VOLATILE
SET search_path = pg_catalog, pg_temp
SET datestyle = 'ISO, YMD'
SET timezone = 'UTC'
AS $qretention$
DECLARE
    v_arm constant text := p_run -> 'arms' ->> 0;
    v_misses constant int := (p_run ->> 'misses')::int + 1;
    v_step jsonb;
    v_key text;
    v_arm_done boolean;
BEGIN
    run := p_run;
    BEGIN
        v_step := @event@.event_prune_limited_v1(v_arm, (run ->> 'now')::timestamptz,
            (run ->> 'window')::bigint, (run ->> 'rows')::int, run ->> 'after',
            LEAST((run ->> 'left')::bigint, 500)::int);
    EXCEPTION WHEN lock_not_available OR deadlock_detected OR serialization_failure THEN
        v_step := NULL;
    END;

    IF v_step IS NULL THEN
        PERFORM pg_sleep(0.05 * v_misses);
        run := run || jsonb_build_object('misses', v_misses);
        v_arm_done := v_misses > 2;
        IF v_arm_done THEN
            RAISE WARNING 'events due by % are left to the next prune: their locks are held', v_arm;
        END IF;
    ELSE
        FOREACH v_key IN ARRAY '{deliveries,skipped,oversize,poison,unknown,failed}'::text[] LOOP
            run := jsonb_set(run, ARRAY[v_key],
                to_jsonb((run ->> v_key)::bigint + (v_step ->> v_key)::bigint));
        END LOOP;
        run := run || jsonb_build_object(
            v_arm, (run ->> v_arm)::bigint + (v_step ->> 'events')::bigint,
            'left', (run ->> 'left')::bigint - (v_step ->> 'events')::bigint,
            'after', v_step -> 'last',
            'misses', 0);
        v_arm_done := (v_step ->> 'done')::boolean;
        IF v_step ->> 'failure' IS NOT NULL THEN
            RAISE WARNING '% events due by % could not be deleted: %',
                v_step ->> 'failed', v_arm, v_step ->> 'failure';
        END IF;
        IF (v_step ->> 'waits')::int > 0 AND (v_step ->> 'skipped')::int > 0 THEN
            RAISE WARNING '% events due by % are left to the next prune: locks behind them are held',
                v_step ->> 'skipped', v_arm;
        END IF;
    END IF;
    IF v_arm_done THEN
        run := run || jsonb_build_object('arms', (run -> 'arms') - 0, 'after', NULL, 'misses', 0);
    END IF;

    done := jsonb_array_length(run -> 'arms') = 0 OR COALESCE((run ->> 'left')::bigint <= 0, false);
    IF done THEN
        RAISE NOTICE 'pruned % events (% succeeded, % settled, % own window, % default window)'
            ' and % deliveries; % events skipped, % oversize, % poison, % unknown, % failed',
            (run ->> 'succeeded')::bigint + (run ->> 'settled')::bigint
                + (run ->> 'own_window')::bigint + (run ->> 'default_window')::bigint,
            run ->> 'succeeded', run ->> 'settled', run ->> 'own_window', run ->> 'default_window',
            run ->> 'deliveries', run ->> 'skipped', run ->> 'oversize', run ->> 'poison',
            run ->> 'unknown', run ->> 'failed';
    END IF;
END
$qretention$
