-- The audit: one row for each step that deleted something, by what made it delete.
SELECT format('   %-24s %5s %9s  %s', h.retention_type, count(*),
    to_char(sum(h.messages_deleted), 'FM999,999,990'),
    CASE h.retention_type
        WHEN 'retention' THEN 'older than the queue keeps anything'
        WHEN 'completed_retention' THEN 'old, and read by every group'
        WHEN 'max_wait_time_eviction' THEN 'waited too long, read or not'
        WHEN '__partition_deleted__' THEN 'an empty partition'
    END)
FROM :"log".retention_history AS h
GROUP BY h.retention_type ORDER BY h.retention_type;
