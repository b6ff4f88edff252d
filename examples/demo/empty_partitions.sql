-- Five partitions that hold no segment: four silent for 60 days, one for 10. Three of them hold
-- something else that retention must not orphan.
SELECT :"demo".configure('sessions', 86400, 0, 0, 0);
SELECT :"demo".provision('sessions', number::text) FROM generate_series(1, 5) AS number;

UPDATE :"log".log_partitions AS p
SET created_at = now() - interval '90 days',
    last_write_at = now() - CASE p.name WHEN '5' THEN interval '10 days' ELSE interval '60 days' END
FROM :"log".queues AS q
WHERE q.id = p.queue_id AND q.name = 'sessions';

INSERT INTO :"log".log_dlq (partition_id, consumer_group, "offset", error)
SELECT :"demo".provision('sessions', '2'), 'mailer', 17, 'mailbox does not exist';

WITH query AS (INSERT INTO :"streams".queries (name) VALUES ('visits per hour') RETURNING id)
INSERT INTO :"streams".state (query_id, partition_id, key, value)
SELECT query.id, :"demo".provision('sessions', '3'), 'count', '41' FROM query;

INSERT INTO :"log".log_consumers (partition_id, consumer_group, batch_end, worker_id,
    lease_acquired_at, lease_expires_at, created_at)
SELECT :"demo".provision('sessions', '4'), 'mailer', 9, 'worker-1', now(), now() + interval '1 hour',
    now() - interval '90 days';
