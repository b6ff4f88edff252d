-- signature: prune_events_begin_v1(bigint, int, bigint)
--
-- The state that prune_events_v1 begins with: the clock of the run, what it was asked, and counts.
--
-- Parameters as prune_events_v1. Raises 22023 for a negative window or limit. Locks: none.
CREATE OR REPLACE FUNCTION @event@.prune_events_begin_v1(
    p_default_window_seconds bigint,
    p_max_rows int,
    p_limit bigint
)
RETURNS jsonb
LANGUAGE plpgsql
STABLE
SET search_path = pg_catalog, pg_temp
SET datestyle = 'ISO, YMD'
SET timezone = 'UTC'
AS $qretention$
BEGIN
    PERFORM FROM @event@.event_prune_range_v1('default_window', now(), p_default_window_seconds);
    IF p_limit < 0 THEN
        RAISE EXCEPTION 'a limit of % events cannot be kept', p_limit
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Pass 0 or NULL for no limit.';
    END IF;
    RETURN jsonb_build_object(
        'now', now(),
        'window', p_default_window_seconds,
        'rows', p_max_rows,
        'left', NULLIF(p_limit, 0),
        'arms', '["succeeded", "settled", "own_window", "default_window"]'::jsonb,
        'after', NULL,
        'misses', 0,
        'succeeded', 0, 'settled', 0, 'own_window', 0, 'default_window', 0,
        'deliveries', 0, 'skipped', 0, 'oversize', 0, 'poison', 0,
        'unknown', 0, 'failed', 0);
END
$qretention$
