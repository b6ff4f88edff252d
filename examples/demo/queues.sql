-- A queue a line: segments and sidecar rows before and after, and why the rest stayed, from the rows.
WITH
numbers AS (
    SELECT q.id, q.name, b.segments AS segments_before, b.sidecar AS sidecar_before,
        NULLIF(GREATEST(q.retention_seconds, 0), 0) AS keep,
        NULLIF(GREATEST(q.completed_retention_seconds, 0), 0) AS keep_read,
        NULLIF(GREATEST(q.max_wait_time_seconds, 0), 0) AS max_wait
    FROM :"log".queues AS q JOIN :"demo".before AS b ON b.queue = q.name
    WHERE b.segments > 0
),
slowest AS (
    SELECT DISTINCT ON (c.partition_id) c.partition_id, c.committed, c.consumer_group
    FROM :"log".log_consumers AS c ORDER BY c.partition_id, c.committed, c.consumer_group
),
rest AS (
    SELECT n.id, count(*) AS segments,
        count(*) FILTER (WHERE s.created_at >= now() - make_interval(
            secs => COALESCE(n.keep, n.keep_read, n.max_wait))) AS young,
        count(*) FILTER (WHERE n.keep IS NULL AND n.max_wait IS NULL AND s.created_at
            < now() - make_interval(secs => n.keep_read)) AS held,
        min(slowest.consumer_group) AS holder, max(slowest.committed) < 0 AS never_read
    FROM numbers AS n
        JOIN :"log".log_partitions AS p ON p.queue_id = n.id
        JOIN :"log".log_segments AS s ON s.partition_id = p.id
        LEFT JOIN slowest ON slowest.partition_id = p.id
    GROUP BY n.id
),
sidecar AS (
    SELECT p.queue_id AS id, count(*) AS rows FROM :"log".log_txns AS t
        JOIN :"log".log_partitions AS p ON p.id = t.partition_id
    GROUP BY p.queue_id
),
reasons AS (
    SELECT n.id, CASE WHEN COALESCE(n.keep, n.keep_read, n.max_wait) IS NULL THEN
        'no policy: kept for ever'
    ELSE concat_ws(', ',
        CASE WHEN rest.held > 0 THEN format(CASE WHEN rest.never_read THEN '%s never read by %s'
            ELSE '%s not yet read by %s' END, rest.held, rest.holder) END,
        CASE WHEN rest.young > 0 THEN format('%s young', rest.young) END)
    END AS reason
    FROM numbers AS n LEFT JOIN rest USING (id)
)
SELECT format('   %-9s %5s -> %-5s %5s -> %-5s  %s', n.name, n.segments_before,
    COALESCE(rest.segments, 0), n.sidecar_before, COALESCE(sidecar.rows, 0), reasons.reason)
FROM numbers AS n LEFT JOIN rest USING (id) LEFT JOIN sidecar USING (id)
    LEFT JOIN reasons USING (id)
ORDER BY n.name;
