-- The empty partitions: which went, and what kept the others.
SELECT format('   sessions/%s  %-6s %s', b.name,
    CASE WHEN p.id IS NULL THEN 'gone' ELSE 'kept' END,
    CASE
        WHEN p.id IS NULL THEN 'empty, and silent for 60 days'
        WHEN EXISTS (SELECT FROM :"log".log_dlq AS d WHERE d.partition_id = p.id)
            THEN 'a dead letter in it would become unreachable'
        WHEN EXISTS (SELECT FROM :"streams".state AS s WHERE s.partition_id = p.id)
            THEN 'a streams query keeps state on it'
        WHEN EXISTS (SELECT FROM :"log".log_consumers AS c WHERE c.partition_id = p.id
            AND c.batch_end IS NOT NULL AND c.lease_expires_at > now())
            THEN 'a worker holds a lease'
        ELSE 'written to 10 days ago: not silent long enough'
    END)
FROM :"demo".partitions_before AS b LEFT JOIN :"log".log_partitions AS p ON p.id = b.id
ORDER BY b.name;
