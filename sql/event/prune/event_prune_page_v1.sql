-- signature: event_prune_page_v1(text, timestamptz, timestamptz, bigint, int)
--
-- Looks at a page of one arm's events, in the order of its key, and says on which something is
-- owed. The key is when an event was recorded; for the own windows, when its window passes.
--
-- p_arm       'succeeded', 'settled', 'own_window', 'default_window'
-- p_before    end of the range: only keys below it
-- p_after, p_after_id  start of the page: only what sorts after this key and id
-- p_limit     most events to look at
--
-- Columns: ids, keys and kept, an entry an event, in order; kept: a delivery keeps it from its arm.
--
-- Only a look: no lock, and nothing read here may be relied on when deleting.
--
-- The plans leave nothing to choose, whatever the statistics say and however long ago they were
-- made: each range has one index in its order, no table is scanned, a bitmap (which reads all of a
-- range first) is not made, and a sub-select under LIMIT or CASE cannot be turned into a join that
-- reads all deliveries. A page comes out of its index in order, and nothing that stands between
-- could change that, so nothing is sorted once more. While little is unfinished, all of that is
-- read once instead of a look for each event.
CREATE OR REPLACE FUNCTION @event@.event_prune_page_v1(
    p_arm text,
    p_before timestamptz,
    p_after timestamptz,
    p_after_id bigint,
    p_limit int,
    OUT ids bigint[],
    OUT keys timestamptz[],
    OUT kept boolean[]
)
LANGUAGE plpgsql
VOLATILE
SET search_path = pg_catalog, pg_temp
SET row_security = off
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
SET enable_incremental_sort = off
SET max_parallel_workers_per_gather = 0
SET work_mem = '8MB'
SET plan_cache_mode = force_generic_plan
SET jit = off
AS $qretention$
DECLARE
    v_few constant int := 256;
    v_terminal constant text[] := @event@.event_prune_terminal_v1(p_arm);
    v_before constant timestamp := p_before AT TIME ZONE 'UTC';
    v_after constant timestamp := p_after AT TIME ZONE 'UTC';
BEGIN
    IF p_arm = 'own_window' THEN
        WITH few AS MATERIALIZED (
            SELECT d.event_id, d.status FROM @delivery_table@ AS d
            WHERE d.status <> 'succeeded'
            ORDER BY d.event_id
            LIMIT v_few + 1
        )
        SELECT
            array_agg(k.id),
            array_agg(k.key),
            array_agg(k.kept)
        INTO ids, keys, kept
        FROM (
            SELECT e.id, e.key, CASE WHEN (SELECT count(*) FROM few) <= v_few
                THEN e.id IN (SELECT f.event_id FROM few AS f WHERE f.status <> ALL (v_terminal))
                ELSE (
                    SELECT d.status FROM @delivery_table@ AS d
                    WHERE d.event_id = e.id
                        AND d.status <> 'succeeded' AND d.status <> ALL (v_terminal)
                    LIMIT 1
                ) IS NOT NULL END AS kept
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
                LIMIT p_limit
            ) AS e
        ) AS k;
    ELSIF p_arm = 'default_window' THEN
        WITH few AS MATERIALIZED (
            SELECT d.event_id, d.status FROM @delivery_table@ AS d
            WHERE d.status <> 'succeeded'
            ORDER BY d.event_id
            LIMIT v_few + 1
        )
        SELECT
            array_agg(k.id),
            array_agg(k.key),
            array_agg(k.kept)
        INTO ids, keys, kept
        FROM (
            SELECT e.id, e.key, CASE WHEN (SELECT count(*) FROM few) <= v_few
                THEN e.id IN (SELECT f.event_id FROM few AS f WHERE f.status <> ALL (v_terminal))
                ELSE (
                    SELECT d.status FROM @delivery_table@ AS d
                    WHERE d.event_id = e.id
                        AND d.status <> 'succeeded' AND d.status <> ALL (v_terminal)
                    LIMIT 1
                ) IS NOT NULL END AS kept
            FROM (
                SELECT e.id, e.recorded_at AS key
                FROM @event_table@ AS e
                WHERE e.retention_seconds IS NULL
                    AND (e.recorded_at, e.id) > (p_after, p_after_id) AND e.recorded_at < p_before
                ORDER BY e.recorded_at, e.id
                LIMIT p_limit
            ) AS e
        ) AS k;
    ELSE
        -- An index without the id is as good: one policy's events of one instant are few.
        PERFORM set_config('enable_incremental_sort', 'on', true);
        WITH few AS MATERIALIZED (
            SELECT d.event_id, d.status FROM @delivery_table@ AS d
            WHERE d.status <> 'succeeded'
            ORDER BY d.event_id
            LIMIT v_few + 1
        )
        SELECT
            array_agg(k.id),
            array_agg(k.key),
            array_agg(k.kept)
        INTO ids, keys, kept
        FROM (
            SELECT e.id, e.key, CASE WHEN (SELECT count(*) FROM few) <= v_few
                THEN e.id IN (SELECT f.event_id FROM few AS f WHERE f.status <> ALL (v_terminal))
                ELSE (
                    SELECT d.status FROM @delivery_table@ AS d
                    WHERE d.event_id = e.id
                        AND d.status <> 'succeeded' AND d.status <> ALL (v_terminal)
                    LIMIT 1
                ) IS NOT NULL END AS kept
            FROM (
                SELECT e.id, e.recorded_at AS key
                FROM @event_table@ AS e
                WHERE e.delete_when = p_arm AND e.delete_when <> ''
                    AND (e.recorded_at, e.id) > (p_after, p_after_id) AND e.recorded_at < p_before
                ORDER BY e.recorded_at, e.id
                LIMIT p_limit
            ) AS e
        ) AS k;
    END IF;
END
$qretention$
