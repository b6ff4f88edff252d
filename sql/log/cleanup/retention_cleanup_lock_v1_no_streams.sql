-- signature: retention_cleanup_lock_v1(timestamptz, uuid, uuid, int)
--
-- The partition clean-up's candidate scan: locks up to p_max_rows partitions that look dead, in
-- ascending id, and returns their ids; NULL when there are none.
--
-- p_cutoff    as in log_partition_dead_v1
-- p_after     only partitions above this id; NULL: from the first
-- p_upto      only partitions up to this id; NULL: to the last
-- p_max_rows  most partitions to lock
--
-- The set form of log_partition_dead_v1, without the streams leg: installed where the streams
-- engine has no state table. It leaves out one arm, the probe below the watermark, which is for the
-- predicate alone. Whether there is a streams engine was settled at install: found otherwise, it
-- refuses with QR003.
--
-- Locks: the partition rows FOR UPDATE SKIP LOCKED, in ascending id like every multi-partition
-- locker, until the transaction ends: whoever holds one is pushing there, so it is not dead. The
-- planner settings make it stream in key order, so that LIMIT bounds what is read, and spare the
-- compilation of a large plan.
CREATE OR REPLACE FUNCTION @log@.retention_cleanup_lock_v1(
    p_cutoff timestamptz,
    p_after uuid,
    p_upto uuid,
    p_max_rows int
)
RETURNS uuid[]
LANGUAGE plpgsql
VOLATILE
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
SET jit = off
AS $qretention$
DECLARE
    v_from constant uuid := COALESCE(p_after, '00000000-0000-0000-0000-000000000000');
    v_upto constant uuid := COALESCE(p_upto, 'ffffffff-ffff-ffff-ffff-ffffffffffff');
BEGIN
    IF EXISTS (
        SELECT
        FROM pg_class AS c
        JOIN pg_namespace AS n ON n.oid = c.relnamespace
        WHERE c.relname = 'state' AND c.relkind IN ('r', 'p') AND n.nspname = @streams_literal@
    ) THEN
        RAISE EXCEPTION 'the state table of the streams schema % has appeared since the install',
            @streams_literal@
            USING ERRCODE = 'QR003',
                HINT = 'Install the part "log" again, so that the clean-up takes it into account.';
    END IF;
    RETURN (
        SELECT array_agg(candidate.id)
        FROM (
            SELECT p.id
            FROM @log@.log_partitions AS p
            WHERE p.id >= v_from
              AND p.id <= v_upto
              AND (p_after IS NULL OR p.id > p_after)
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
            LIMIT GREATEST(COALESCE(p_max_rows, 1), 1)
            FOR UPDATE OF p SKIP LOCKED
        ) AS candidate
    );
END
$qretention$
