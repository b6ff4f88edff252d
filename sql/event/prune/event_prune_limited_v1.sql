-- signature: event_prune_limited_v1(text, timestamptz, bigint, int, text, int)
--
-- One bounded step of the prune: one arm, one batch; event_prune_step_v1 with a bound on events.
--
-- p_arm  'succeeded'       consumed: every delivery succeeded or cancelled
--        'settled'         every delivery terminal: also dead or orphaned
--        'own_window'      a window of its own has passed, and every delivery is terminal
--        'default_window'  no window of its own, older than the default, all terminal; also
--                          takes events of any policy, known or not, that their own arm has left
--        Each is to be drained before the next.
-- p_now  the clock: one for all the steps of a run. NULL: nothing is due
-- p_default_window_seconds  0: as soon as settled. NULL, or longer ago than the year 1: that arm is
--        off. Negative: refused, it would delete the future
-- p_max_rows  most rows to delete, an event and each of its deliveries counting one; NULL and
--        anything below 1 count as 1, anything above 1000000 as that
-- p_after     the "last" of the step before; NULL: from the beginning
-- p_max_events  most events to delete, up to 500; NULL counts as 1. 0 and below: the step only looks,
--        and is done if there is nothing to delete
--
-- Strictly older goes: what is exactly as old as its window stays.
--
-- Result keys: events and deliveries deleted; skipped, due events of which a row, or one that goes
-- with them or refers to them, is locked by somebody else, left to the next run; oversize, 1 where
-- an event with more deliveries than p_max_rows began to lose them, a chunk a step; poison, rows
-- that no arm can judge, and unknown, rows whose policy or status is none that is known, both
-- counted by the first step of a run, up to 1000; failed, due events that something else holds on
-- to or a trigger refused, left to the next run, and failure, the SQLSTATE and message of the
-- first; waits, how many locks were waited for in vain; last, where this step ended; done, the arm
-- has nothing further. A delivery of unknown status is owed as any other.
--
-- A run ends at done. A step may delete nothing and not be done: what it looked at was owed or
-- locked, and "last" lies further on. Given the "last" of a step that was done, a new run starts at
-- what that one left behind, less ten minutes, and does not read again the dead index entries
-- before it. That is a hint: what commits late with an older date is found by a run from NULL.
--
-- Locks: rows as event_prune_batch_v1 and event_prune_chunk_v1, FOR UPDATE, until the transaction
-- ends. Transaction: the caller's, one a step, READ COMMITTED (QR004 otherwise). A step with
-- nothing to delete writes nothing. No row's lock is waited for longer than event_prune_patience_v1
-- says; one on a whole table is 55P03, and the next step finds the same. Row-level security that
-- would hide rows from the caller is refused (42501): what is owed by a hidden row would go with
-- its event. A trigger of the host's runs with the path pg_catalog, pg_temp, and is to pin its own.
CREATE OR REPLACE FUNCTION @event@.event_prune_limited_v1(
    p_arm text,
    p_now timestamptz,
    p_default_window_seconds bigint,
    p_max_rows int,
    p_after text,
    p_max_events int
)
RETURNS jsonb
LANGUAGE plpgsql
VOLATILE
SET search_path = pg_catalog, pg_temp
AS $qretention$
DECLARE
    v_rows constant int := LEAST(GREATEST(COALESCE(p_max_rows, 1), 1), 1000000);
    v_want constant int := LEAST(GREATEST(COALESCE(p_max_events, 1), 0), 500, v_rows);
    v_first constant timestamptz := '0001-01-01 00:00:00+00';
    v_range record;
    v_start record;
    v_found record;
    v_batch record;
    v_taken int;            -- of the events found, how many fitted; 0: the first alone does not
    v_low timestamptz;      -- the first key that was there when the run began
    v_last_key timestamptz;
    v_last_id bigint;
    v_chunked bigint;       -- the event that is losing its deliveries in chunks
    v_events int := 0;
    v_deliveries bigint := 0;
    v_skipped int := 0;
    v_oversize int := 0;
    v_poison int := 0;
    v_unknown int := 0;
    v_failed int := 0;
    v_failure text;         -- of the first that failed
    v_waits int := 0;
    v_done boolean;
    v_session constant text := current_setting('lock_timeout');
BEGIN
    SELECT r.* INTO v_range
    FROM @event@.event_prune_range_v1(p_arm, p_now, p_default_window_seconds) AS r;
    SELECT c.* INTO v_start FROM @event@.event_prune_cursor_v1(p_arm, p_after) AS c;
    IF v_range.before IS NULL THEN
        RETURN @event@.event_prune_answer_v1(NULL, true);
    END IF;
    IF v_start.fresh AND v_want > 0 THEN
        v_poison := @event@.event_prune_poison_v1(p_arm);
        v_unknown := @event@.event_prune_unknown_v1(p_arm);
    END IF;

    SELECT f.* INTO v_found
    FROM @event@.event_prune_find_v1(p_arm, v_range.before, v_start.key, v_start.id,
        GREATEST(v_want, 1), GREATEST(v_rows * 64, 10000)) AS f;
    IF v_want = 0 AND cardinality(v_found.ids) > 0 THEN
        RETURN @event@.event_prune_answer_v1(p_after, false);
    END IF;
    v_low := COALESCE(v_start.low, v_found.first_key);
    v_last_key := v_found.last_key;
    v_last_id := v_found.last_id;
    v_done := v_found.ended;

    IF cardinality(v_found.ids) > 0 THEN
        PERFORM set_config('lock_timeout', @event@.event_prune_patience_v1(1), true);
        SELECT b.* INTO v_batch
        FROM @event@.event_prune_apart_v1(p_arm, p_now, v_range.cutoff, v_found.ids, v_rows) AS b;
        v_taken := v_batch.taken;
        v_events := v_batch.events;
        v_deliveries := v_batch.deliveries;
        v_skipped := v_batch.skipped;
        v_failed := v_batch.failed;
        v_failure := v_batch.failure;
        v_waits := v_batch.waits;
        v_done := v_done AND GREATEST(v_taken, 1) = cardinality(v_found.ids);
        IF v_taken < cardinality(v_found.ids) OR v_found.ended OR v_last_key IS NULL THEN
            v_last_key := v_found.keys[GREATEST(v_taken, 1)];
            v_last_id := v_found.ids[GREATEST(v_taken, 1)];
        END IF;
    END IF;
    IF v_taken = 0 THEN
        BEGIN
            SELECT c.* INTO v_batch
            FROM @event@.event_prune_chunk_v1(p_arm, p_now, v_range.cutoff, v_last_id, v_rows) AS c;
            v_deliveries := v_batch.deliveries;
            v_skipped := v_batch.skipped;
        EXCEPTION WHEN lock_not_available THEN
            v_skipped := 1;
            v_waits := 1;
        WHEN data_exception OR integrity_constraint_violation OR plpgsql_error
                OR triggered_action_exception OR triggered_data_change_violation
                OR sql_routine_exception OR external_routine_exception
                OR external_routine_invocation_exception OR with_check_option_violation THEN
            v_failed := 1;
            v_failure := concat_ws(' ', SQLSTATE, SQLERRM);
        END;
        IF v_deliveries > 0 THEN
            -- Next time at the same event, which is counted once however many chunks it takes.
            v_chunked := v_last_id;
            v_oversize := (v_start.chunked IS DISTINCT FROM v_last_id)::int;
            v_last_id := v_last_id - 1;
            v_done := false;
        END IF;
    END IF;

    PERFORM set_config('lock_timeout', v_session, true);

    v_done := v_done AND v_skipped = 0;
    RETURN jsonb_build_object(
        'failed', v_failed,
        'failure', v_failure,
        'waits', v_waits,
        'unknown', v_unknown,
        'events', v_events,
        'deliveries', v_deliveries,
        'skipped', v_skipped,
        'oversize', v_oversize,
        'poison', v_poison,
        'last', CASE WHEN v_done
            THEN @event@.event_prune_last_v1(p_arm, NULL, NULL,
                LEAST(v_low, GREATEST(LEAST(v_range.before, p_now), v_first) - interval '10 minutes'),
                NULL)
            ELSE @event@.event_prune_last_v1(p_arm, v_last_key, v_last_id, v_low, v_chunked) END,
        'done', v_done);
END
$qretention$
