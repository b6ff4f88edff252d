-- signature: retention_floors_refresh_v1(uuid[], timestamptz)
--
-- Brings the floors of some partitions up to date: those that were found to hold nothing deletable,
-- new ones, pinned ones whose group has moved on, and, in the walk, all in turn. Adds rows that are
-- missing, removes those of partitions that are gone, marks and releases pinned ones. Writes what
-- differs.
--
-- p_ids    the partitions; a few hundred at most, since locks last until the transaction ends
-- p_clock  the clock that policies are taken at; NULL: now()
--
-- One row for each partition that changed, could not be settled, or has a head dated in the future:
-- partition_id, queue_id, state, consumer_group (of a pinned one), due (a step would delete now),
-- future. States: 'raised', 'lowered', 'pinned', 'released', 'moved', 'settled' (its mark alone),
-- 'added', 'removed', 'busy' (empty, and its lock was not to be had, or another refresh is at it:
-- it stays on the list), NULL (only future).
--
-- Locks: floors rows FOR NO KEY UPDATE SKIP LOCKED; partitions with something empty FOR NO KEY
-- UPDATE SKIP LOCKED, ascending, and emptiness is read again in the next statement. It waits for
-- nobody. One transaction. READ COMMITTED only (QR004): each look needs a snapshot of its own.
CREATE OR REPLACE FUNCTION @log@.retention_floors_refresh_v1(
    p_ids uuid[],
    p_clock timestamptz DEFAULT NULL
)
RETURNS TABLE (
    partition_id uuid,
    queue_id uuid,
    state text,
    consumer_group text,
    due boolean,
    future boolean
)
LANGUAGE plpgsql
VOLATILE
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
SET plan_cache_mode = force_generic_plan
AS $qretention$
#variable_conflict use_column
DECLARE
    v_clock constant timestamptz := COALESCE(p_clock, now());
    v_wanted uuid[];        -- those to write
    v_empty uuid[];         -- of these, those to lock
    v_missing uuid[];
    v_orphans uuid[];
    v_mine uuid[];
    v_locked uuid[];
BEGIN
    IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
        RAISE EXCEPTION 'a refresh of floors needs READ COMMITTED, not %',
                upper(current_setting('transaction_isolation'))
            USING ERRCODE = 'QR004',
                HINT = 'It looks again after it has its locks, so every statement needs a snapshot '
                    'of its own: BEGIN ISOLATION LEVEL READ COMMITTED.';
    END IF;

    SELECT array_agg(l.partition_id ORDER BY l.partition_id)
               FILTER (WHERE l.state <> 'orphan' OR l.state IS NULL AND (l.needs_lock OR l.future)),
           array_agg(l.partition_id ORDER BY l.partition_id) FILTER (WHERE l.needs_lock),
           array_agg(l.partition_id ORDER BY l.partition_id) FILTER (WHERE l.state = 'missing'),
           array_agg(l.partition_id ORDER BY l.partition_id) FILTER (WHERE l.state = 'orphan')
    INTO v_wanted, v_empty, v_missing, v_orphans
    FROM @log@.retention_floors_look_v1(p_ids, v_clock, NULL) AS l;

    IF v_missing IS NOT NULL THEN
        RETURN QUERY
        INSERT INTO @log@.retention_floors AS f (partition_id, queue_id, look_xid)
        SELECT p.id, p.queue_id, pg_current_xact_id()::text::bigint
        FROM @log@.log_partitions AS p
        WHERE p.id = ANY (v_missing)
        ORDER BY p.id
        ON CONFLICT (partition_id) DO NOTHING
        RETURNING f.partition_id, f.queue_id, 'added', NULL::text, false, false;
    END IF;
    IF v_orphans IS NOT NULL THEN
        -- A partition that is made again under its old id takes over the row: the lock first, then
        -- another look.
        v_orphans := ARRAY(
            SELECT x.partition_id
            FROM @log@.retention_floors AS x
            WHERE x.partition_id = ANY (v_orphans)
            ORDER BY x.partition_id
            FOR UPDATE SKIP LOCKED
        );
        RETURN QUERY
        DELETE FROM @log@.retention_floors AS f
        WHERE f.partition_id = ANY (v_orphans)
          AND NOT EXISTS (SELECT FROM @log@.log_partitions AS p WHERE p.id = f.partition_id)
        RETURNING f.partition_id, f.queue_id, 'removed', NULL::text, false, false;
    END IF;
    IF v_wanted IS NULL THEN
        RETURN;
    END IF;
    v_mine := ARRAY(
        SELECT f.partition_id
        FROM @log@.retention_floors AS f
        WHERE f.partition_id = ANY (v_wanted)
        ORDER BY f.partition_id
        FOR NO KEY UPDATE SKIP LOCKED
    );
    v_locked := ARRAY(
        SELECT p.id
        FROM @log@.log_partitions AS p
        WHERE p.id = ANY (v_empty) AND p.id = ANY (v_mine)
        ORDER BY p.id
        FOR NO KEY UPDATE SKIP LOCKED
    );

    RETURN QUERY
    WITH looked AS MATERIALIZED (
        SELECT l.* FROM @log@.retention_floors_look_v1(v_mine, v_clock, v_locked) AS l
    ), written AS (
        UPDATE @log@.retention_floors AS f
        SET queue_id = l.queue_id,
            segments_floor = l.segments_floor,
            txns_floor = l.txns_floor,
            look_xid = l.look_xid,
            pinned_since = CASE WHEN l.pinned THEN COALESCE(f.pinned_since, now()) END,
            pinned_group = l.pinned_group,
            pinned_offset = l.pinned_offset
        FROM looked AS l
        WHERE f.partition_id = l.partition_id AND l.changed
    )
    SELECT l.partition_id, l.queue_id,
           CASE WHEN l.needs_lock THEN 'busy' ELSE l.state END,
           l.pinned_group, l.due, l.future
    FROM looked AS l
    WHERE l.changed OR l.needs_lock OR l.future;

    RETURN QUERY
    SELECT busy.id, NULL::uuid, 'busy', NULL::text, false, false
    FROM unnest(v_wanted) AS busy(id)
    WHERE busy.id <> ALL (v_mine);
END
$qretention$
