-- signature: event_prune_poison_v1(text)
--
-- How many of an arm's events have a date that nothing can be reckoned from: infinite, before the
-- year 1, or from 9999 on; among those with a window of their own also a window below one second.
-- No arm deletes such a row. Each is counted in one arm: own window, else policy, else default.
--
-- p_arm  'succeeded', 'settled', 'own_window', 'default_window'
-- Returns the number; it stops counting at 1000.
-- Locks: none. Reads both ends of an index.
CREATE OR REPLACE FUNCTION @event@.event_prune_poison_v1(p_arm text)
RETURNS int
LANGUAGE plpgsql
STABLE
SET search_path = pg_catalog, pg_temp
SET row_security = off
SET enable_seqscan = off
SET enable_bitmapscan = off
SET max_parallel_workers_per_gather = 0
SET jit = off
AS $qretention$
DECLARE
    v_most constant int := 1000;
BEGIN
    IF p_arm = 'own_window' THEN
        RETURN (
            SELECT count(*) FROM (
                SELECT FROM @event_table@ AS e
                WHERE e.retention_seconds IS NOT NULL
                    AND (CASE WHEN e.recorded_at >= '0001-01-01 00:00:00+00'::timestamptz
                            AND e.recorded_at < '9999-01-01 00:00:00+00'::timestamptz
                            AND e.retention_seconds > 0
                        THEN (e.recorded_at AT TIME ZONE 'UTC')
                            + make_interval(secs => e.retention_seconds)
                        ELSE 'infinity'::timestamp
                    END) = 'infinity'::timestamp
                LIMIT v_most
            ) AS poison
        );
    ELSIF p_arm = 'default_window' THEN
        RETURN (
            SELECT count(*) FROM (
                (SELECT e.retention_seconds, e.delete_when FROM @event_table@ AS e
                WHERE e.retention_seconds IS NULL
                    AND e.recorded_at < '0001-01-01 00:00:00+00'::timestamptz
                ORDER BY e.recorded_at LIMIT v_most)
                UNION ALL
                (SELECT e.retention_seconds, e.delete_when FROM @event_table@ AS e
                WHERE e.retention_seconds IS NULL
                    AND e.recorded_at >= '9999-01-01 00:00:00+00'::timestamptz
                ORDER BY e.recorded_at LIMIT v_most)
            ) AS poison
            WHERE poison.delete_when NOT IN ('succeeded', 'settled')
        );
    END IF;
    RETURN (
        SELECT count(*) FROM (
            (SELECT e.retention_seconds FROM @event_table@ AS e
            WHERE e.delete_when = p_arm AND e.delete_when <> ''
                AND e.recorded_at < '0001-01-01 00:00:00+00'::timestamptz
            ORDER BY e.recorded_at LIMIT v_most)
            UNION ALL
            (SELECT e.retention_seconds FROM @event_table@ AS e
            WHERE e.delete_when = p_arm AND e.delete_when <> ''
                AND e.recorded_at >= '9999-01-01 00:00:00+00'::timestamptz
            ORDER BY e.recorded_at LIMIT v_most)
        ) AS poison
        WHERE poison.retention_seconds IS NULL
    );
END
$qretention$
