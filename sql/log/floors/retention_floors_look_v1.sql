-- signature: retention_floors_look_v1(uuid[], timestamptz, uuid[])
--
-- What the floors of some partitions are, and what they should be now. Reads only.
--
-- p_ids     the partitions
-- p_clock   the clock that policies are taken at
-- p_locked  partitions whose row lock the caller holds: only those may be called empty
--
-- Columns: partition_id; queue_id, segments_floor, txns_floor, look_xid, pinned, pinned_group and
-- pinned_offset as they should be; changed: the stored row differs; needs_lock: something is empty
-- and can only be raised under the partition's lock; due: a step would delete; future: the head is
-- dated later than now(); state: what the change is ('missing': no floors row yet, 'orphan': no
-- partition any more, 'raised', 'lowered', 'pinned', 'released', 'moved', 'settled'), NULL: none.
--
-- A floor becomes the date of what is first at the watermark, but never -infinity, which means unknown
-- (a row of that date counts as the oldest there can be), and never later than now(), so that
-- a head dated in the future cannot hide a partition. It is lowered wherever it is wrong, and
-- raised only where that takes the partition off the list: an idle partition is not written at
-- every look. What is empty becomes now(), under the partition's lock, since a push under way may
-- carry an earlier stamp. Pinned: old enough for rule 2 alone, and the slowest group has not passed
-- the head. A partition that is due below where the list has looked already (lowered, released,
-- moved) is marked with a new look_xid, whatever mark it had.
--
-- Locks: none. Every probe is a primary key look-up that starts at the watermark; consumers are
-- read only where rule 2 decides. Joins to the few queues come after the look-ups, materialized, or
-- they would be repeated for each row.
CREATE OR REPLACE FUNCTION @log@.retention_floors_look_v1(
    p_ids uuid[],
    p_clock timestamptz,
    p_locked uuid[]
)
RETURNS TABLE (
    partition_id uuid,
    queue_id uuid,
    segments_floor timestamptz,
    txns_floor timestamptz,
    look_xid bigint,
    pinned boolean,
    pinned_group text,
    pinned_offset bigint,
    changed boolean,
    needs_lock boolean,
    due boolean,
    future boolean,
    state text
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
BEGIN
    RETURN QUERY
    WITH page AS MATERIALIZED (
        SELECT wanted.id, p.id IS NULL AS orphan, f.partition_id IS NULL AS missing,
               p.queue_id, p.log_start, p.txns_start,
               f.queue_id AS f_queue_id, f.segments_floor, f.txns_floor, f.look_xid,
               f.pinned_since IS NOT NULL AS f_pinned, f.pinned_group, f.pinned_offset,
               s.created_at AS s_created, s.end_offset AS s_end, t.created_at AS t_created,
               COALESCE(wanted.id = ANY (p_locked), false) AS locked
        FROM unnest(p_ids) AS wanted(id)
        LEFT JOIN LATERAL (
            SELECT x.* FROM @log@.retention_floors AS x WHERE x.partition_id = wanted.id LIMIT 1
        ) AS f ON true
        LEFT JOIN LATERAL (
            SELECT x.* FROM @log@.log_partitions AS x WHERE x.id = wanted.id LIMIT 1
        ) AS p ON true
        LEFT JOIN LATERAL (
            SELECT x.created_at, x.end_offset
            FROM @log@.log_segments AS x
            WHERE x.partition_id = p.id AND x.base_offset >= p.log_start
            ORDER BY x.base_offset
            LIMIT 1
        ) AS s ON true
        LEFT JOIN LATERAL (
            SELECT x.created_at
            FROM @log@.log_txns AS x
            WHERE x.partition_id = p.id AND x.base_offset >= p.txns_start
            ORDER BY x.base_offset
            LIMIT 1
        ) AS t ON true
        WHERE f.partition_id IS NOT NULL OR p.id IS NOT NULL
    ), cutoffs AS MATERIALIZED (
        SELECT c.queue_id, c.txns_cutoff, c.completed_cutoff,
               GREATEST(c.all_cutoff, c.max_wait_cutoff) AS forced_cutoff,
               GREATEST(c.all_cutoff, c.max_wait_cutoff, c.completed_cutoff) AS segments_cutoff
        FROM @log@.retention_cutoffs_v1(p_clock,
            ARRAY(SELECT DISTINCT page.queue_id FROM page)) AS c
    ), rules AS MATERIALIZED (
        SELECT page.*, c.txns_cutoff, c.segments_cutoff,
               COALESCE(page.s_created < c.completed_cutoff
                   AND (page.s_created < c.forced_cutoff) IS NOT TRUE, false) AS by_completed,
               CASE WHEN page.s_created IS NOT NULL THEN GREATEST(LEAST(page.s_created, now()), '4714-11-24 00:00:00+00 BC')
                    WHEN page.locked THEN now() END AS s_bound,
               CASE WHEN page.t_created IS NOT NULL THEN GREATEST(LEAST(page.t_created, now()), '4714-11-24 00:00:00+00 BC')
                    WHEN page.locked THEN now() END AS t_bound,
               page.segments_floor = '-infinity' OR page.segments_floor > now()
                   OR COALESCE(page.segments_floor < c.segments_cutoff, false) AS s_open,
               page.txns_floor = '-infinity' OR page.txns_floor > now()
                   OR COALESCE(page.txns_floor < c.txns_cutoff, false) AS t_open
        FROM page
        LEFT JOIN cutoffs AS c ON c.queue_id = page.queue_id
    )
    SELECT r.id, r.queue_id, floor.s_new, floor.t_new, mark.l_new, held.held,
           held.consumer_group, held.until,
           (r.queue_id, floor.s_new, floor.t_new, mark.l_new, held.held, held.consumer_group,
                   held.until)
               IS DISTINCT FROM (r.f_queue_id, r.segments_floor, r.txns_floor, r.look_xid,
                   r.f_pinned, r.pinned_group, r.pinned_offset),
           NOT (r.locked OR r.orphan)
               AND (r.s_created IS NULL AND r.s_open
                   OR r.t_created IS NULL AND r.t_open) IS NOT FALSE,
           verdict.due,
           COALESCE(r.s_created > now(), false),
           CASE WHEN r.orphan THEN 'orphan'
                WHEN r.missing THEN 'missing'
                WHEN held.held AND NOT r.f_pinned THEN 'pinned'
                WHEN r.f_pinned AND NOT held.held THEN 'released'
                WHEN r.f_queue_id <> r.queue_id THEN 'moved'
                WHEN verdict.lowered THEN 'lowered'
                WHEN floor.s_new > r.segments_floor OR floor.t_new > r.txns_floor THEN 'raised'
                WHEN mark.l_new IS DISTINCT FROM r.look_xid
                  OR (held.consumer_group, held.until)
                      IS DISTINCT FROM (r.pinned_group, r.pinned_offset) THEN 'settled' END
    FROM rules AS r
    CROSS JOIN LATERAL (
        SELECT CASE WHEN r.s_open AND r.s_bound IS NOT NULL THEN r.s_bound
                    ELSE LEAST(r.segments_floor, r.s_bound) END AS s_new,
               CASE WHEN r.t_open AND r.t_bound IS NOT NULL THEN r.t_bound
                    ELSE LEAST(r.txns_floor, r.t_bound) END AS t_new
    ) AS floor
    LEFT JOIN LATERAL (
        SELECT x.consumer_group, COALESCE(x.committed, -1) AS committed
        FROM @log@.log_consumers AS x
        WHERE x.partition_id = r.id AND r.by_completed
        ORDER BY COALESCE(x.committed, -1), x.consumer_group
        LIMIT 1
    ) AS slowest ON true
    CROSS JOIN LATERAL (
        SELECT r.by_completed AND (slowest.committed >= r.s_end) IS NOT TRUE AS held,
               CASE WHEN (slowest.committed >= r.s_end) IS NOT TRUE
                    THEN slowest.consumer_group END AS consumer_group,
               CASE WHEN r.by_completed AND (slowest.committed >= r.s_end) IS NOT TRUE
                    THEN r.s_end END AS until
    ) AS held
    CROSS JOIN LATERAL (
        SELECT COALESCE(floor.s_new < r.segments_cutoff, false) AND NOT held.held
                   OR COALESCE(floor.t_new < r.txns_cutoff, false) AS due,
               floor.s_new < r.segments_floor OR floor.t_new < r.txns_floor AS lowered
    ) AS verdict
    CROSS JOIN LATERAL (
        SELECT CASE WHEN NOT verdict.due AND LEAST(floor.s_new, floor.t_new) > '-infinity'
                    THEN NULL
                    WHEN verdict.lowered OR r.f_pinned AND NOT held.held
                        OR r.f_queue_id <> r.queue_id
                    THEN pg_current_xact_id()::text::bigint
                    ELSE r.look_xid
               END AS l_new
    ) AS mark;
END
$qretention$
