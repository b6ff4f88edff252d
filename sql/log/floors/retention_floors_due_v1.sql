-- signature: retention_floors_due_v1(timestamptz, int, uuid, uuid[], bigint, uuid[], bigint[], timestamptz[], timestamptz[])
--
-- The work list of mode `due`: the partitions with something to delete now, found by their floors.
--
-- p_clock    the cycle's clock; NULL: now(), and the answer tells it
-- p_cap      most partitions of one queue in one page; at most 200
-- p_after    the queue to begin after (filed_under of the last row of the page before); the others
--            follow in ascending id, around to this one; NULL: from the start
-- p_exclude  partitions to leave out: backed off, or busy in this cycle; NULL: none
-- p_hint_*   the five hints of an earlier answer, as they came; NULL: none, look from the start
--
-- Columns: clock, partition_id, queue_id (the partition's own; NULL: the partition is gone),
-- all_cutoff, completed_cutoff, txns_cutoff, max_wait_cutoff (NULL: off, or not due), filed_under,
-- and five hints.
-- A partition with no cutoff at all needs no step but a refresh: its floors are unknown, or filed
-- under another queue. At most 1000 partitions, then always one row with a NULL partition_id. It
-- carries the hint for the looks to come, when this one found nothing; otherwise the earlier hint
-- stays good.
--
-- The hint says, for each queue, below which floor nothing is filed, and for the marks, which
-- transactions were over: a look that starts there does not crawl over index entries of what was
-- raised before, which no scan can remove while an old snapshot is held. A hint holds for the
-- policy that its queue had: under another, partitions that were out of the index come back into it
-- below. It is only a hint all the same: begin without one after connecting, and now and then.
--
-- Marks, two kinds of floors, and pinned partitions make four index ranges a queue. Their
-- LIMITs are literals and bitmaps and sorts are off, so that they are walked in order, whatever the
-- statistics: this reads nothing beyond what it returns, and cleans dead entries as it goes. Joins
-- to the few queues come after the look-ups, materialized, or they would be repeated for each row.
--
-- Locks: none. Read-only.
CREATE OR REPLACE FUNCTION @log@.retention_floors_due_v1(
    p_clock timestamptz,
    p_cap int,
    p_after uuid,
    p_exclude uuid[],
    p_hint_look bigint,
    p_hint_queues uuid[],
    p_hint_policies bigint[],
    p_hint_segments timestamptz[],
    p_hint_txns timestamptz[]
)
RETURNS TABLE (
    clock timestamptz,
    partition_id uuid,
    queue_id uuid,
    all_cutoff timestamptz,
    completed_cutoff timestamptz,
    txns_cutoff timestamptz,
    max_wait_cutoff timestamptz,
    filed_under uuid,
    hint_look bigint,
    hint_queues uuid[],
    hint_policies bigint[],
    hint_segments timestamptz[],
    hint_txns timestamptz[]
)
LANGUAGE plpgsql
VOLATILE
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
SET jit = off
SET plan_cache_mode = force_generic_plan
AS $qretention$
#variable_conflict use_column
DECLARE
    v_clock constant timestamptz := COALESCE(p_clock, now());
    v_exclude constant uuid[] := COALESCE(p_exclude, '{}');
    v_look constant bigint := COALESCE(p_hint_look, 0);
BEGIN
    RETURN QUERY
    WITH queues AS MATERIALIZED (
        SELECT c.*,
               COALESCE(low.segments, '-infinity') AS segments_low,
               COALESCE(low.txns, '-infinity') AS txns_low
        FROM (
            SELECT x.*,
                   GREATEST(x.all_cutoff, x.max_wait_cutoff) AS forced,
                   GREATEST(x.all_cutoff, x.max_wait_cutoff, x.completed_cutoff) AS segments,
                   hash_array_extended(ARRAY[v_clock - x.all_cutoff, v_clock - x.completed_cutoff,
                       v_clock - x.txns_cutoff, v_clock - x.max_wait_cutoff], 0) AS policy
            FROM @log@.retention_cutoffs_v1(v_clock, NULL) AS x
        ) AS c
        LEFT JOIN unnest(p_hint_queues, p_hint_policies, p_hint_segments, p_hint_txns)
            AS low(queue_id, policy, segments, txns)
            ON low.queue_id = c.queue_id AND low.policy = c.policy
    ), found AS MATERIALIZED (
        SELECT row_number() OVER () AS n, q.queue_id AS filed_under, f.*
        FROM (
            SELECT x.* FROM queues AS x ORDER BY x.queue_id <= p_after, x.queue_id
        ) AS q
        CROSS JOIN LATERAL (
            SELECT u.* FROM (
                (SELECT f.partition_id, f.segments_floor, f.txns_floor, f.pinned_since
                 FROM @log@.retention_floors AS f
                 WHERE f.queue_id = q.queue_id AND f.look_xid IS NOT NULL AND f.look_xid >= v_look
                   AND f.partition_id <> ALL (v_exclude)
                 ORDER BY f.look_xid
                 LIMIT 200)
                UNION ALL
                (SELECT f.partition_id, f.segments_floor, f.txns_floor, f.pinned_since
                 FROM @log@.retention_floors AS f
                 WHERE f.queue_id = q.queue_id AND f.pinned_since IS NULL AND f.look_xid IS NULL
                   AND f.segments_floor >= q.segments_low AND f.segments_floor < q.segments
                   AND f.partition_id <> ALL (v_exclude)
                 ORDER BY f.segments_floor
                 LIMIT 200)
                UNION ALL
                (SELECT f.partition_id, f.segments_floor, f.txns_floor, f.pinned_since
                 FROM @log@.retention_floors AS f
                 WHERE f.queue_id = q.queue_id AND f.pinned_since IS NOT NULL AND f.look_xid IS NULL
                   AND f.segments_floor < q.forced
                   AND f.partition_id <> ALL (v_exclude)
                 ORDER BY f.segments_floor
                 LIMIT 200)
                UNION ALL
                (SELECT f.partition_id, f.segments_floor, f.txns_floor, f.pinned_since
                 FROM @log@.retention_floors AS f
                 WHERE f.queue_id = q.queue_id AND f.look_xid IS NULL
                   AND f.txns_floor >= q.txns_low AND f.txns_floor < q.txns_cutoff
                   AND (f.segments_floor < CASE WHEN f.pinned_since IS NULL
                        THEN q.segments ELSE q.forced END) IS NOT TRUE
                   AND f.partition_id <> ALL (v_exclude)
                 ORDER BY f.txns_floor
                 LIMIT 200)
            ) AS u
            LIMIT LEAST(GREATEST(COALESCE(p_cap, 200), 1), 200)
        ) AS f
        LIMIT 1000
    ), placed AS MATERIALIZED (
        SELECT f.*, p.queue_id
        FROM found AS f
        LEFT JOIN LATERAL (
            SELECT x.queue_id FROM @log@.log_partitions AS x WHERE x.id = f.partition_id LIMIT 1
        ) AS p ON true
    )
    SELECT r.clock, r.partition_id, r.queue_id, r.all_cutoff, r.completed_cutoff,
           r.txns_cutoff, r.max_wait_cutoff, r.filed_under,
           r.hint_look, r.hint_queues, r.hint_policies, r.hint_segments, r.hint_txns
    FROM (
        SELECT f.n, v_clock AS clock, f.partition_id, f.queue_id,
               CASE WHEN d.retention THEN own.all_cutoff END AS all_cutoff,
               CASE WHEN d.retention THEN own.completed_cutoff END AS completed_cutoff,
               CASE WHEN f.txns_floor > '-infinity' AND f.txns_floor < own.txns_cutoff
                    THEN own.txns_cutoff END AS txns_cutoff,
               CASE WHEN f.segments_floor > '-infinity' AND f.segments_floor < own.max_wait_cutoff
                    THEN own.max_wait_cutoff END AS max_wait_cutoff,
               f.filed_under, NULL::bigint AS hint_look, NULL::uuid[] AS hint_queues,
               NULL::bigint[] AS hint_policies, NULL::timestamptz[] AS hint_segments,
               NULL::timestamptz[] AS hint_txns
        FROM placed AS f
        LEFT JOIN queues AS own ON own.queue_id = f.queue_id
        CROSS JOIN LATERAL (
            SELECT f.segments_floor > '-infinity' AND f.segments_floor < GREATEST(own.all_cutoff,
                CASE WHEN f.pinned_since IS NULL THEN own.completed_cutoff END) AS retention
        ) AS d
        UNION ALL
        SELECT NULL, v_clock, NULL, NULL, NULL, NULL, NULL, NULL, NULL, low.*
        FROM (SELECT) AS one
        LEFT JOIN LATERAL (
            SELECT LEAST(pg_snapshot_xmin(pg_current_snapshot())::text::bigint, min(e.look_xid)),
                   array_agg(q.queue_id),
                   array_agg(q.policy),
                   array_agg(LEAST(GREATEST(q.segments_low, q.segments), e.segments_floor)),
                   array_agg(LEAST(GREATEST(q.txns_low, q.txns_cutoff), e.txns_floor))
            FROM queues AS q
            LEFT JOIN (
                SELECT f.queue_id, min(f.look_xid) AS look_xid, min(f.txns_floor) AS txns_floor,
                       min(f.segments_floor) AS segments_floor
                FROM unnest(v_exclude) AS x(id)
                JOIN @log@.retention_floors AS f ON f.partition_id = x.id
                GROUP BY f.queue_id
            ) AS e ON e.queue_id = q.queue_id
            WHERE NOT EXISTS (SELECT FROM found)
            HAVING NOT EXISTS (SELECT FROM found)
        ) AS low ON true
    ) AS r
    ORDER BY r.n;
END
$qretention$
