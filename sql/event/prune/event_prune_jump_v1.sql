-- signature: event_prune_jump_v1(text, timestamptz, timestamptz, bigint, int)
--
-- Passes over events that something is owed on, thousands at a time.
--
-- p_arm, p_before, p_after, p_after_id  as event_prune_page_v1
-- p_limit  how many unfinished deliveries to read, so how many events can be passed over
--
-- Columns: last_key and last_id, to go on after; NULL: every event in the range is kept.
--
-- What is unfinished is read once, in the order of its index, and compared with the events as a
-- whole: a third of the time of a look at each. An event found among it is kept for certain. The
-- first that is not may be due, or there was more than was read; the page from there on tells. Of
-- p_limit + 1 events at least one is not among p_limit deliveries: so where none is found, the
-- range has no more.
--
-- Only a look, no lock; with the same care for the plans as event_prune_page_v1. Here a join is
-- wanted, between two inputs that are bounded both.
CREATE OR REPLACE FUNCTION @event@.event_prune_jump_v1(
    p_arm text,
    p_before timestamptz,
    p_after timestamptz,
    p_after_id bigint,
    p_limit int,
    OUT last_key timestamptz,
    OUT last_id bigint
)
LANGUAGE plpgsql
VOLATILE
SET search_path = pg_catalog, pg_temp
SET row_security = off
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
SET enable_incremental_sort = off
SET enable_nestloop = off
SET enable_mergejoin = off
SET work_mem = '8MB'
SET max_parallel_workers_per_gather = 0
SET plan_cache_mode = force_generic_plan
SET jit = off
AS $qretention$
DECLARE
    v_terminal constant text[] := @event@.event_prune_terminal_v1(p_arm);
    v_before constant timestamp := p_before AT TIME ZONE 'UTC';
    v_after constant timestamp := p_after AT TIME ZONE 'UTC';
BEGIN
    IF p_arm = 'own_window' THEN
        SELECT (array_agg(e.key ORDER BY e.key, e.id))[1],
            (array_agg(e.id ORDER BY e.key, e.id))[1] - 1
        INTO last_key, last_id
        FROM (
            SELECT w.id, w.key AT TIME ZONE 'UTC' AS key
            FROM (
                SELECT e.id, CASE WHEN e.recorded_at >= '0001-01-01 00:00:00+00'::timestamptz
                        AND e.recorded_at < '9999-01-01 00:00:00+00'::timestamptz
                        AND e.retention_seconds > 0
                    THEN (e.recorded_at AT TIME ZONE 'UTC')
                        + make_interval(secs => e.retention_seconds)
                    ELSE 'infinity'::timestamp
                END AS key
                FROM @event_table@ AS e
                WHERE e.retention_seconds IS NOT NULL
            ) AS w
            WHERE (w.key, w.id) > (v_after, p_after_id) AND w.key < v_before
            ORDER BY w.key, w.id
            LIMIT p_limit::bigint + 1
        ) AS e
        WHERE NOT EXISTS (
            SELECT FROM (
                SELECT d.event_id, d.status FROM @delivery_table@ AS d
                WHERE d.status <> 'succeeded'
                ORDER BY d.event_id
                LIMIT p_limit
            ) AS u
            WHERE u.event_id = e.id AND u.status <> ALL (v_terminal)
        );
    ELSIF p_arm = 'default_window' THEN
        SELECT (array_agg(e.key ORDER BY e.key, e.id))[1],
            (array_agg(e.id ORDER BY e.key, e.id))[1] - 1
        INTO last_key, last_id
        FROM (
            SELECT e.id, e.recorded_at AS key
            FROM @event_table@ AS e
            WHERE e.retention_seconds IS NULL
                AND (e.recorded_at, e.id) > (p_after, p_after_id) AND e.recorded_at < p_before
            ORDER BY e.recorded_at, e.id
            LIMIT p_limit::bigint + 1
        ) AS e
        WHERE NOT EXISTS (
            SELECT FROM (
                SELECT d.event_id, d.status FROM @delivery_table@ AS d
                WHERE d.status <> 'succeeded'
                ORDER BY d.event_id
                LIMIT p_limit
            ) AS u
            WHERE u.event_id = e.id AND u.status <> ALL (v_terminal)
        );
    ELSE
        -- An index without the id is as good: one policy's events of one instant are few.
        PERFORM set_config('enable_incremental_sort', 'on', true);
        SELECT (array_agg(e.key ORDER BY e.key, e.id))[1],
            (array_agg(e.id ORDER BY e.key, e.id))[1] - 1
        INTO last_key, last_id
        FROM (
            SELECT e.id, e.recorded_at AS key
            FROM @event_table@ AS e
            WHERE e.delete_when = p_arm AND e.delete_when <> ''
                AND (e.recorded_at, e.id) > (p_after, p_after_id) AND e.recorded_at < p_before
            ORDER BY e.recorded_at, e.id
            LIMIT p_limit::bigint + 1
        ) AS e
        WHERE NOT EXISTS (
            SELECT FROM (
                SELECT d.event_id, d.status FROM @delivery_table@ AS d
                WHERE d.status <> 'succeeded'
                ORDER BY d.event_id
                LIMIT p_limit
            ) AS u
            WHERE u.event_id = e.id AND u.status <> ALL (v_terminal)
        );
    END IF;
END
$qretention$
