-- signature: event_prune_take_v1(text, bigint[], text[], timestamptz[])
--
-- Deletes the deliveries of locked events by which nothing is owed, and returns how many went. Part
-- of a prune; by itself it keeps nothing that is owed from losing its event: the caller compares
-- the number.
--
-- p_arm     'succeeded', 'settled', 'own_window', 'default_window'
-- p_events  the events
-- p_receivers, p_newest  what their last successes were when it was looked, NULL where there was
--           none: one that has succeeded since is not taken, since that would be forgotten
--
-- Locks: the deliveries. A row that somebody else has locked is waited for a millisecond, then
-- 55P03: it is a matter for event_prune_careful_v1, and well before a deadlock could be one.
CREATE OR REPLACE FUNCTION @event@.event_prune_take_v1(
    p_arm text,
    p_events bigint[],
    p_receivers text[],
    p_newest timestamptz[]
)
RETURNS bigint
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
    v_terminal constant text[] := @event@.event_prune_terminal_v1(p_arm);
    -- Earlier than this is earlier than anybody's newest, whoever it was that has one.
    v_least constant timestamptz := (SELECT min(n.newest) FROM unnest(p_newest) AS n (newest));
    v_silent constant text[] := ARRAY(
        SELECT n.receiver FROM unnest(p_receivers, p_newest) AS n (receiver, newest)
        WHERE n.newest IS NULL);
    v_deliveries bigint;
BEGIN
    -- The status so that no index of a host's on it is used: all that ever succeeded would be read.
    DELETE FROM @delivery_table@ AS d
    WHERE d.event_id = ANY (p_events) AND (d.status = ANY (v_terminal)) IS TRUE
        AND (d.succeeded_at IS NULL
            OR (d.succeeded_at <= v_least AND d.receiver_key <> ALL (v_silent))
            OR d.succeeded_at <= p_newest[array_position(p_receivers, d.receiver_key::text)]);
    GET DIAGNOSTICS v_deliveries = ROW_COUNT;
    RETURN v_deliveries;
END
$qretention$
