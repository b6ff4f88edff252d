-- A backlog for the last act: everything in the queue `load` becomes an hour older.
UPDATE :"log".log_segments AS s SET created_at = s.created_at - interval '1 hour'
FROM :"log".log_partitions AS p JOIN :"log".queues AS q ON q.id = p.queue_id
WHERE p.id = s.partition_id AND q.name = 'load';

UPDATE :"log".log_txns AS t SET created_at = t.created_at - interval '1 hour'
FROM :"log".log_partitions AS p JOIN :"log".queues AS q ON q.id = p.queue_id
WHERE p.id = t.partition_id AND q.name = 'load';
