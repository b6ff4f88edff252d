-- How far past its cutoff the oldest segment of some partitions is, at the cycle's clock.
--
-- $1 clock timestamptz, $2 ids uuid[]   the partitions that a cycle left with work
--
-- Column: microseconds int8; NULL: nothing there is past a cutoff of its queue. A rule counts whether or not a
-- slow group holds its segments. Each partition is one look at its watermark.
-- Locks: none. Transaction: one read-only statement.
SELECT pg_catalog.max((pg_catalog.date_part('epoch', $1::pg_catalog.timestamptz OPERATOR(pg_catalog.-) head.created_at)
    OPERATOR(pg_catalog.-) q.shortest) OPERATOR(pg_catalog.*) 1000000)::pg_catalog.int8
FROM pg_catalog.unnest($2::pg_catalog.uuid[]) AS wanted(id)
JOIN @log@.log_partitions AS p ON p.id OPERATOR(pg_catalog.=) wanted.id
CROSS JOIN LATERAL (
    SELECT LEAST(
        CASE WHEN qq.retention_enabled AND qq.retention_seconds OPERATOR(pg_catalog.>) 0 THEN qq.retention_seconds END,
        CASE WHEN qq.retention_enabled AND qq.completed_retention_seconds OPERATOR(pg_catalog.>) 0
            THEN qq.completed_retention_seconds END,
        CASE WHEN qq.max_wait_time_seconds OPERATOR(pg_catalog.>) 0 THEN qq.max_wait_time_seconds END) AS shortest
    FROM @log@.queues AS qq
    WHERE qq.id OPERATOR(pg_catalog.=) p.queue_id
) AS q
CROSS JOIN LATERAL (
    -- No interval reaches to an infinite date: it counts as the oldest there can be, or as fresh.
    SELECT LEAST(GREATEST(s.created_at, '4714-11-24 00:00:00+00 BC'::pg_catalog.timestamptz),
        $1::pg_catalog.timestamptz) AS created_at
    FROM @log@.log_segments AS s
    WHERE s.partition_id OPERATOR(pg_catalog.=) p.id AND s.base_offset OPERATOR(pg_catalog.>=) p.log_start
    ORDER BY s.base_offset
    LIMIT 1
) AS head
WHERE pg_catalog.date_part('epoch', $1::pg_catalog.timestamptz OPERATOR(pg_catalog.-) head.created_at)
    OPERATOR(pg_catalog.>) q.shortest
