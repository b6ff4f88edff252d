-- Time passes: the older three quarters of every partition become two days older, sidecar included.
-- Only created_at moves, and only in a prefix of each partition, so that it still rises with the offset.
UPDATE :"log".log_segments AS s SET created_at = s.created_at - interval '2 days'
FROM :"log".log_partitions AS p
WHERE p.id = s.partition_id AND s.end_offset < (p.last_offset + 1) * 3 / 4;

UPDATE :"log".log_txns AS t SET created_at = t.created_at - interval '2 days'
FROM :"log".log_partitions AS p
WHERE p.id = t.partition_id AND t.end_offset < (p.last_offset + 1) * 3 / 4;
