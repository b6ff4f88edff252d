-- What is there before a cycle, for the tables that compare.
DROP TABLE IF EXISTS :"demo".before;
CREATE TABLE :"demo".before AS
SELECT q.name AS queue,
    (SELECT count(*) FROM :"log".log_segments AS s JOIN :"log".log_partitions AS p
        ON p.id = s.partition_id WHERE p.queue_id = q.id) AS segments,
    (SELECT count(*) FROM :"log".log_txns AS t JOIN :"log".log_partitions AS p
        ON p.id = t.partition_id WHERE p.queue_id = q.id) AS sidecar
FROM :"log".queues AS q;

CREATE TABLE IF NOT EXISTS :"demo".partitions_before AS
SELECT p.id, p.name, p.last_write_at FROM :"log".log_partitions AS p JOIN :"log".queues AS q
    ON q.id = p.queue_id
WHERE q.name = 'sessions';
