-- signature: event_prune_take_v1(text, bigint[])
--
-- Deletes the deliveries of locked events by which nothing is owed, and says what each receiver's
-- newest success among them was. Part of a prune; by itself it keeps nothing that is owed from
-- losing its event: the caller compares the number.
--
-- p_arm     'succeeded', 'settled', 'own_window', 'default_window'
-- p_events  the events
--
-- Columns: gone, the events; deliveries, how many went; skipped, 0; receivers and newest, one entry
-- for each that ever succeeded. A success dated 'infinity' or outside the years 1 to 9998 is
-- nobody's newest.
-- Locks: the deliveries. A row that somebody else has locked is waited for a millisecond, then
-- 55P03: it is a matter for event_prune_careful_v1, and well before a deadlock could be one.
CREATE OR REPLACE FUNCTION @event@.event_prune_take_v1(
    p_arm text,
    p_events bigint[],
    OUT gone bigint[],
    OUT skipped int,
    OUT deliveries bigint,
    OUT receivers text[],
    OUT newest timestamptz[]
)
LANGUAGE plpgsql
VOLATILE
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '1ms'
SET row_security = off
SET enable_seqscan = off
SET enable_bitmapscan = off
SET max_parallel_workers_per_gather = 0
SET plan_cache_mode = force_generic_plan
SET jit = off
AS $qretention$
DECLARE
    v_terminal constant text[] := CASE p_arm
        WHEN 'succeeded' THEN '{succeeded,cancelled}'
        ELSE '{succeeded,cancelled,dead,orphaned}' END;
BEGIN
    gone := p_events;
    skipped := 0;
    WITH gone AS (
        DELETE FROM @delivery_table@ AS d
        WHERE d.event_id = ANY (p_events) AND d.status = ANY (v_terminal)
        RETURNING d.receiver_key, d.succeeded_at
    )
    SELECT
        COALESCE(sum(r.deliveries), 0),
        COALESCE(array_agg(r.receiver_key) FILTER (WHERE r.newest IS NOT NULL), '{}'),
        COALESCE(array_agg(r.newest) FILTER (WHERE r.newest IS NOT NULL), '{}')
    INTO deliveries, receivers, newest
    FROM (
        SELECT g.receiver_key, count(*) AS deliveries,
            max(g.succeeded_at) FILTER (
                WHERE g.succeeded_at >= '0001-01-01 00:00:00+00'::timestamptz
                    AND g.succeeded_at < '9999-01-01 00:00:00+00'::timestamptz) AS newest
        FROM gone AS g
        GROUP BY g.receiver_key
    ) AS r;
END
$qretention$
