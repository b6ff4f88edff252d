-- signature: event_prune_page_v1(text, timestamp, timestamp, bigint, int, boolean)
--
-- Looks at a page of one arm's events, in the order of its key, and says which of them owe nothing.
-- The key is when an event was recorded, for the own windows when the window passes; in UTC.
--
-- p_arm       'succeeded', 'settled', 'own_window', 'default_window'
-- p_before    end of the range: only keys below it
-- p_after, p_after_id  start of the page: only what sorts after this key and id
-- p_limit     most events to look at
-- p_together  read what is unfinished at once instead of event by event; for pages of thousands
--
-- Columns: events looked at; ids and keys of those with nothing owed, in order; owed_key, the key of
-- the first of the others; unknown, how many a delivery of no known status keeps; last_key and
-- last_id of the page where it is full, else NULL: the range ends with it.
--
-- Only a look: no lock, and nothing read here may be relied on when deleting.
--
-- The statement is planned each time with its limits written out, because a plan kept from when the
-- tables were small, or one made for any limit, may prefer an index that holds the history. What else
-- there is to choose is taken away: no scan of a table, no bitmap (which reads all of a range first),
-- and the look at the deliveries is a sub-select under LIMIT or CASE, which no planner joins or hashes
-- over the table. Read together, the unfinished are taken up to p_limit; where there are more than
-- that, an outbox with a backlog, each event is looked up by itself after all.
CREATE OR REPLACE FUNCTION @event@.event_prune_page_v1(
    p_arm text,
    p_before timestamp,
    p_after timestamp,
    p_after_id bigint,
    p_limit int,
    p_together boolean,
    OUT events int,
    OUT ids bigint[],
    OUT keys timestamp[],
    OUT owed_key timestamp,
    OUT unknown int,
    OUT last_key timestamp,
    OUT last_id bigint
)
LANGUAGE plpgsql
VOLATILE
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
SET enable_bitmapscan = off
SET max_parallel_workers_per_gather = 0
SET work_mem = '8MB'
SET jit = off
AS $qretention$
DECLARE
    v_column constant text := CASE p_arm WHEN 'own_window' THEN $expiry$
        (CASE WHEN e.recorded_at >= '0001-01-01 00:00:00+00'::timestamptz
                AND e.recorded_at < '9999-01-01 00:00:00+00'::timestamptz
                AND e.retention_seconds > 0
            THEN (e.recorded_at AT TIME ZONE 'UTC') + make_interval(secs => e.retention_seconds)
            ELSE 'infinity'::timestamp
        END)$expiry$
        ELSE 'e.recorded_at' END;
    v_zone constant text := CASE p_arm WHEN 'own_window' THEN '' ELSE 'AT TIME ZONE ''UTC''' END;
    v_filter constant text := CASE p_arm
        WHEN 'own_window' THEN 'e.retention_seconds IS NOT NULL'
        WHEN 'default_window' THEN 'e.retention_seconds IS NULL'
        ELSE format('e.delete_when = %L AND e.delete_when <> ''''', p_arm) END;
    -- A policy's own arm has counted its events already.
    v_counted constant text := CASE p_arm
        WHEN 'default_window' THEN 'e.delete_when NOT IN (''succeeded'', ''settled'')'
        ELSE 'true' END;
    v_range constant text := format(
        '%s AND (%s, e.id) > ($1 %s, $2) AND %2$s < $3 %3$s ORDER BY %2$s, e.id',
        v_filter, v_column, v_zone);
    v_done constant text := CASE p_arm
        WHEN 'succeeded' THEN '{succeeded,cancelled}'
        ELSE '{succeeded,cancelled,dead,orphaned}' END;
    v_alone constant text := format($probe$
        (SELECT d.status FROM @delivery_table@ AS d
         WHERE d.event_id = e.id AND d.status <> 'succeeded' AND d.status <> ALL (%L::text[])
         LIMIT 1)$probe$, v_done);
    v_open text := '';
    v_kept_by text := v_alone;
BEGIN
    IF p_together THEN
        v_open := format($open$
        WITH open AS MATERIALIZED (
            SELECT d.event_id, d.status
            FROM @delivery_table@ AS d
            WHERE d.status <> 'succeeded'
            ORDER BY d.event_id
            LIMIT %s
        )$open$, p_limit::bigint + 1);
        v_kept_by := format($together$
        CASE WHEN (SELECT count(*) FROM open) > %s THEN %s
            WHEN e.id IN (SELECT o.event_id FROM open AS o
                WHERE o.status IN ('pending', 'failed', 'claimed', 'dead', 'orphaned', 'cancelled')
                    AND o.status <> ALL (%L::text[])) THEN 'pending'
            WHEN e.id IN (SELECT o.event_id FROM open AS o
                WHERE o.status NOT IN ('pending', 'failed', 'claimed', 'dead', 'orphaned',
                    'cancelled')) THEN '?'
        END$together$, p_limit, v_alone, v_done);
    END IF;
    EXECUTE format($page$
        %s
        SELECT seen.*, last.key, last.id
        FROM (
            SELECT
                count(*)::int AS events,
                array_agg(k.id ORDER BY k.key, k.id) FILTER (WHERE k.kept_by IS NULL),
                array_agg(k.key ORDER BY k.key, k.id) FILTER (WHERE k.kept_by IS NULL),
                min(k.key) FILTER (WHERE k.kept_by IS NOT NULL),
                (count(*) FILTER (WHERE k.counted AND k.kept_by NOT IN
                    ('pending', 'failed', 'claimed', 'dead', 'orphaned', 'cancelled')))::int
            FROM (
                SELECT e.id, e.key, e.counted, %s AS kept_by
                FROM (
                    SELECT e.id, %s %s AS key, %s AS counted
                    FROM @event_table@ AS e
                    WHERE %s
                    LIMIT %s
                ) AS e
                OFFSET 0
            ) AS k
        ) AS seen
        LEFT JOIN LATERAL (
            SELECT %3$s %4$s AS key, e.id
            FROM @event_table@ AS e
            WHERE seen.events = %7$s AND %6$s
            OFFSET %7$s - 1 LIMIT 1
        ) AS last ON true$page$,
        v_open, v_kept_by, v_column, v_zone, v_counted, v_range, p_limit)
    INTO events, ids, keys, owed_key, unknown, last_key, last_id
    USING p_after, p_after_id, p_before;
END
$qretention$
