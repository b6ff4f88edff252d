-- signature: log_partition_dead_v1(uuid, timestamptz)
--
-- Whether a partition may be deleted: silent since before p_cutoff, empty, and nothing vetoes. NULL
-- where there is no such partition. A NULL cutoff: false.
--
-- The predicate of record of the partition clean-up. The candidate scan asks the same in set form
-- and a test holds the two together; this one decides, under the locks. Each arm of the CASE is a
-- veto, cheapest first (a CASE keeps its order); OFFSET 0 keeps the planner from turning a probe
-- into a hash of the whole table. Traces are no veto: they tell of messages already consumed, and
-- nothing ever purges them.
--
-- Locks: none. Reads the snapshot of the statement that calls it. Runs as its caller.
CREATE OR REPLACE FUNCTION @log@.log_partition_dead_v1(
    p_pid uuid,
    p_cutoff timestamptz
)
RETURNS boolean
LANGUAGE plpgsql
STABLE
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
AS $qretention$
BEGIN
    RETURN (
        SELECT
            CASE
                -- Young, or written to inside the window. Unknown (NULL) counts as young.
                WHEN (p.created_at < p_cutoff AND p.last_write_at < p_cutoff) IS NOT TRUE THEN false
                -- It holds a segment. Asked from the watermark, so that dead index entries are not
                -- crawled.
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
                -- veto, since on an empty partition no pop will ever come and clear it; one without
                -- expiry counts as live.
                WHEN EXISTS (
                    SELECT FROM @log@.log_consumers AS c
                    WHERE c.partition_id = p.id
                      AND c.batch_end IS NOT NULL
                      AND COALESCE(c.lease_expires_at, 'infinity'::timestamptz) > now()
                    OFFSET 0
                ) THEN false
                -- Any group's activity inside the window, a lease that expired inside it included.
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
                -- A segment below the watermark, which nothing but a restore by hand leaves: a
                -- consumer could still read it. Last, since this probe has to crawl; a delete's
                -- cascade would all the same.
                WHEN EXISTS (
                    SELECT FROM @log@.log_segments AS s
                    WHERE s.partition_id = p.id
                    OFFSET 0
                ) THEN false
                ELSE true
            END
        FROM @log@.log_partitions AS p
        WHERE p.id = p_pid
    );
END
$qretention$
