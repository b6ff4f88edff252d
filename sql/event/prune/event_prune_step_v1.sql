-- signature: event_prune_step_v1(text, timestamptz, bigint, int, text)
--
-- One bounded step of the prune: one arm, one batch of at most p_max_rows rows and 500 events.
--
-- p_arm                     'succeeded', 'settled', 'own_window', 'default_window'
-- p_now                     the clock of the run
-- p_default_window_seconds  the default window
-- p_max_rows                most rows to delete
-- p_after                   the "last" of the step before; NULL: from the beginning
--
-- Result keys: events, deliveries, skipped, oversize, poison, last, done. Events that could not be
-- deleted are a warning.
-- What each of them means, the locks and the transaction: see event_prune_limited_v1.
CREATE OR REPLACE FUNCTION @event@.event_prune_step_v1(
    p_arm text,
    p_now timestamptz,
    p_default_window_seconds bigint,
    p_max_rows int,
    p_after text DEFAULT NULL
)
RETURNS jsonb
LANGUAGE plpgsql
VOLATILE
SET search_path = pg_catalog, pg_temp
AS $qretention$
DECLARE
    v_step constant jsonb := @event@.event_prune_limited_v1(p_arm, p_now, p_default_window_seconds,
        p_max_rows, p_after, 500);
BEGIN
    IF v_step ->> 'failure' IS NOT NULL THEN
        RAISE WARNING '% events due by % could not be deleted: %',
            v_step ->> 'failed', p_arm, v_step ->> 'failure';
    END IF;
    RETURN v_step - '{unknown,failed,failure,waits}'::text[];
END
$qretention$
