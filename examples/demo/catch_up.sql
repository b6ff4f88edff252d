-- The slow group reads everything that is there.
UPDATE :"log".log_consumers AS c SET committed = p.last_offset, batch_end = NULL, worker_id = NULL,
    lease_expires_at = NULL
FROM :"log".log_partitions AS p
WHERE p.id = c.partition_id AND c.consumer_group = 'audit';
