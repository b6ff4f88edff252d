-- signature: retention_cleanup_lock_v1(timestamptz, uuid, uuid, int)
--
-- The partition clean-up's candidate scan: locks up to p_max_rows partitions that look dead, in
-- ascending id.
--
-- p_cutoff    as in log_partition_dead_v1
-- p_after     only partitions above this id; NULL: from the first
-- p_upto      only partitions up to this id; NULL: to the last
-- p_max_rows  most partitions to lock
--
-- Returns one row: ids, the locked ones, ascending, NULL when there are none; spared, how many
-- looked dead and were passed over because somebody held their row.
--
-- The set form of log_partition_dead_v1. It leaves out one arm, the probe below the watermark,
-- which is for the predicate alone. Candidates are found first and locked in a second statement,
-- since a scan that locks as it goes cannot say what it skipped; what a locked candidate leaves
-- of the batch goes to those behind it. Refuses with QR003 when the streams engine came or went.
--
-- Locks: the partition rows FOR UPDATE SKIP LOCKED, in ascending id like every multi-partition
-- locker, until the transaction ends: whoever holds one is pushing there, so it is not dead. The
-- planner settings make it stream in key order, so that LIMIT bounds what is read, and spare the
-- compilation of a large plan.
CREATE OR REPLACE FUNCTION @log@.retention_cleanup_lock_v1(
    p_cutoff timestamptz,
    p_after uuid,
    p_upto uuid,
    p_max_rows int,
    OUT ids uuid[],
    OUT spared bigint
)
LANGUAGE plpgsql
VOLATILE
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
SET jit = off
AS $qretention$
DECLARE
    v_upto constant uuid := COALESCE(p_upto, 'ffffffff-ffff-ffff-ffff-ffffffffffff');
    v_after uuid := p_after;
    v_left int := GREATEST(COALESCE(p_max_rows, 1), 1);
    v_from uuid;
    v_found uuid[];
    v_locked uuid[];
BEGIN
    PERFORM @log@.retention_streams_check_v1();
    spared := 0;
    WHILE v_left > 0 LOOP
        v_from := COALESCE(v_after, '00000000-0000-0000-0000-000000000000');
        v_found := ARRAY(
            SELECT p.id
            FROM @log@.log_partitions AS p
            WHERE p.id >= v_from
              AND p.id <= v_upto
              AND (v_after IS NULL OR p.id > v_after)
              AND CASE
                -- Young, or written to inside the window. Unknown (NULL) counts as young.
                WHEN (p.created_at < p_cutoff AND p.last_write_at < p_cutoff) IS NOT TRUE THEN false
                -- It holds a segment. Asked from the watermark, so that dead index entries are
                -- not crawled.
                WHEN EXISTS (
                    SELECT FROM @log@.log_segments AS s
                    WHERE s.partition_id = p.id AND s.base_offset >= p.log_start
                    OFFSET 0
                ) THEN false
                -- A dead letter: its readers find it through the partition.
                WHEN EXISTS (
                    SELECT FROM @log@.log_dlq AS d
                    WHERE d.partition_id = p.id
                    OFFSET 0
                ) THEN false
                -- Streams state.
                WHEN @log@.retention_streams_state_v1(p.id, false) IS NOT NULL THEN false
                -- A live lease, by the real clock: somebody is in mid-batch. An expired one is no
                -- veto, since on an empty partition no pop will ever come and clear it; one
                -- without expiry counts as live.
                WHEN EXISTS (
                    SELECT FROM @log@.log_consumers AS c
                    WHERE c.partition_id = p.id
                      AND c.batch_end IS NOT NULL
                      AND COALESCE(c.lease_expires_at, 'infinity'::timestamptz) > now()
                    OFFSET 0
                ) THEN false
                -- Any group's activity inside the window, a lease that expired inside it
                -- included.
                WHEN EXISTS (
                    SELECT FROM @log@.log_consumers AS c
                    WHERE c.partition_id = p.id
                      AND (
                          c.created_at >= p_cutoff
                          OR c.lease_acquired_at >= p_cutoff
                          OR c.lease_expires_at >= p_cutoff
                      )
                    OFFSET 0
                ) THEN false
                ELSE true
              END
            ORDER BY p.id
            LIMIT v_left
        );
        v_locked := ARRAY(
            SELECT p.id
            FROM @log@.log_partitions AS p
            WHERE p.id = ANY (v_found)
            ORDER BY p.id
            FOR UPDATE SKIP LOCKED
        );
        ids := ids || v_locked;
        spared := spared + cardinality(v_found) - cardinality(v_locked);
        EXIT WHEN cardinality(v_found) < v_left;
        v_after := v_found[v_left];
        v_left := v_left - cardinality(v_locked);
    END LOOP;
    ids := NULLIF(ids, '{}');
END
$qretention$
