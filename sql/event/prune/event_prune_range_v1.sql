-- signature: event_prune_range_v1(text, timestamptz, bigint)
--
-- Checks what a step was asked, and says which keys of its arm are due.
--
-- Parameters as event_prune_limited_v1.
-- Columns: before, the end of the range, exclusive; NULL: nothing is due. cutoff, what was
-- recorded before it is past the default window; NULL where that arm is off.
-- Raises QR004 under another isolation level, 22023 for an unknown arm, a clock that is not finite
-- and a negative window. Locks: none.
CREATE OR REPLACE FUNCTION @event@.event_prune_range_v1(
    p_arm text,
    p_now timestamptz,
    p_default_window_seconds bigint,
    OUT before timestamptz,
    OUT cutoff timestamptz
)
LANGUAGE plpgsql
STABLE
SET search_path = pg_catalog, pg_temp
AS $qretention$
DECLARE
    v_end constant timestamptz := '9999-01-01 00:00:00+00';
    v_year_one constant numeric := -62135596800; -- 0001-01-01 as seconds since 1970
BEGIN
    IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
        RAISE EXCEPTION 'events are pruned under READ COMMITTED only, not %',
            upper(current_setting('transaction_isolation'))
            USING ERRCODE = 'QR004',
                HINT = 'Begin the transaction with BEGIN ISOLATION LEVEL READ COMMITTED, or set'
                    ' default_transaction_isolation: the look before the delete needs a snapshot of'
                    ' its own.';
    END IF;
    IF p_arm IS NULL OR p_arm NOT IN ('succeeded', 'settled', 'own_window', 'default_window') THEN
        RAISE EXCEPTION 'no arm of the prune is called %', quote_nullable(p_arm)
            USING ERRCODE = 'invalid_parameter_value',
                HINT = 'The arms are succeeded, settled, own_window and default_window.';
    END IF;
    IF NOT isfinite(p_now) THEN
        RAISE EXCEPTION 'the clock of a prune must be finite, not %', p_now
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Pass now().';
    END IF;
    IF p_default_window_seconds < 0 THEN
        RAISE EXCEPTION 'a default window of % seconds would delete the future',
            p_default_window_seconds
            USING ERRCODE = 'invalid_parameter_value',
                HINT = 'Pass 0 or more; 0 deletes as soon as everything is settled.';
    END IF;
    IF p_default_window_seconds <= extract(epoch FROM p_now)::numeric - v_year_one THEN
        cutoff := p_now - make_interval(secs => p_default_window_seconds);
    END IF;
    before := CASE p_arm
        WHEN 'own_window' THEN LEAST(p_now, v_end)
        WHEN 'default_window' THEN LEAST(cutoff, v_end)
        ELSE v_end END;
    IF p_now IS NULL OR (p_arm = 'default_window' AND cutoff IS NULL) THEN
        before := NULL;
    END IF;
END
$qretention$
