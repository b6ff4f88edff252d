-- signature: event_prune_apart_v1(text, timestamptz, timestamptz, bigint[], int)
--
-- event_prune_batch_v1, and where that fails for the sake of some event, the batch without it: a
-- row of somebody else's that refers to it, a trigger that refuses, a row behind it or a last
-- success that somebody keeps locked. Such an event is met again by every run, and is not to stop
-- those behind it.
--
-- Parameters and columns as event_prune_batch_v1, skipped with those behind which a row is locked;
-- further columns: failed, how many events failed by themselves; failure, the SQLSTATE and message
-- of the first; waits, how many locks were waited for in vain.
--
-- Halves are tried until what fails is one event. After so many of those the rest is left to the
-- next step: if it is not the events' fault and each fails, a step is still short, and however many
-- of them are in front, a run comes to what is behind.
--
-- A lock is waited for as long as lock_timeout says, and after each wait in vain only a quarter as
-- long: it is the same one again, most likely. Who waits for what is deleted already waits through
-- those as well, and would make a deadlock of it if they lasted: so with something to commit a step
-- ends after few of them.
-- Locks and transaction: as there, the two tables first; each try is a subtransaction, and gives its
-- locks back where it fails.
CREATE OR REPLACE FUNCTION @event@.event_prune_apart_v1(
    p_arm text,
    p_now timestamptz,
    p_cutoff timestamptz,
    p_ids bigint[],
    p_rows int,
    OUT taken int,
    OUT events int,
    OUT deliveries bigint,
    OUT skipped int,
    OUT failed int,
    OUT failure text,
    OUT waits int
)
LANGUAGE plpgsql
VOLATILE
SET search_path = pg_catalog, pg_temp
SET row_security = off
AS $qretention$
DECLARE
    v_most constant int := 64;      -- events that fail or are locked
    v_most_waits constant int := 20; -- with something to commit
    v_alone int := 0;               -- of v_most
    v_ends int[] := ARRAY[cardinality(p_ids)]; -- of the parts to try, the next one last
    v_from int;
    v_to int;
    v_batch record;
BEGIN
    -- A table that nobody may write to, as while an index is built, is no event's fault: 55P03.
    LOCK TABLE @event_table@, @delivery_table@ IN ROW EXCLUSIVE MODE;
    taken := 0;
    events := 0;
    deliveries := 0;
    skipped := 0;
    failed := 0;
    waits := 0;
    WHILE cardinality(v_ends) > 0 LOOP
        v_from := taken + 1;
        v_to := v_ends[cardinality(v_ends)];
        -- What failed has used up no rows; what is left may be too few for the part.
        EXIT WHEN p_rows - events - deliveries < 1;
        BEGIN
            SELECT b.* INTO v_batch
            FROM @event@.event_prune_batch_v1(p_arm, p_now, p_cutoff,
                p_ids[v_from:LEAST(v_to, v_from - 1 + (p_rows - events - deliveries)::int)],
                (p_rows - events - deliveries)::int) AS b;
            taken := taken + v_batch.taken;
            events := events + v_batch.events;
            deliveries := deliveries + v_batch.deliveries;
            skipped := skipped + v_batch.skipped;
            EXIT WHEN taken < v_to;
            v_ends := v_ends[1:cardinality(v_ends) - 1];
        EXCEPTION WHEN lock_not_available THEN
            waits := waits + 1;
            PERFORM set_config('lock_timeout', @event@.event_prune_patience_v1(4), true);
            IF v_from < v_to THEN
                EXIT WHEN events > 0 AND waits >= v_most_waits;
                v_ends := v_ends || (v_from + v_to - 1) / 2;
                CONTINUE;
            END IF;
            v_alone := v_alone + 1;
            skipped := skipped + 1;
            taken := taken + 1;
            v_ends := v_ends[1:cardinality(v_ends) - 1];
            EXIT WHEN v_alone >= v_most OR (events > 0 AND waits >= v_most_waits);
        WHEN data_exception OR integrity_constraint_violation OR plpgsql_error
                OR triggered_action_exception OR triggered_data_change_violation
                OR sql_routine_exception OR external_routine_exception
                OR external_routine_invocation_exception OR with_check_option_violation THEN
            IF v_from < v_to THEN
                v_ends := v_ends || (v_from + v_to - 1) / 2;
                CONTINUE;
            END IF;
            v_alone := v_alone + 1;
            failed := failed + 1;
            failure := COALESCE(failure, concat_ws(' ', SQLSTATE, SQLERRM));
            taken := taken + 1;
            v_ends := v_ends[1:cardinality(v_ends) - 1];
            EXIT WHEN v_alone >= v_most;
        END;
    END LOOP;
END
$qretention$
