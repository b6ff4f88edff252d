-- pop(partition, group, worker, lease_seconds): the group's next segment in a partition.
-- lease_seconds 0 acks at once; else the batch is the worker's until the lease ends or `ack` comes.
-- Result: outcome `batch` with its first and last offset; `empty`, and then the cursor is sealed at
-- the allocator, so that it never points below what retention deleted; `busy` if another worker
-- holds the consumer row or a live lease; `gone` if there is no such partition.
--
-- The allocator is read before the segments: what it counts was committed with its segment, so a
-- seal cannot step over a push that commits in between.
-- Locks: the consumer row until commit. One transaction.
CREATE OR REPLACE FUNCTION @broker@.pop(p_partition uuid, p_group text, p_worker text,
    p_lease_seconds integer, OUT outcome text, OUT first_offset bigint, OUT last_offset bigint)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $broker$
DECLARE
    consumer @log@.log_consumers;
    allocated bigint;
    log_start bigint;
    stamp timestamptz := clock_timestamp();
BEGIN
    SELECT p.last_offset, p.log_start INTO allocated, log_start
    FROM @log@.log_partitions AS p WHERE p.id = p_partition;
    IF NOT FOUND THEN
        outcome := 'gone';
        RETURN;
    END IF;
    IF NOT EXISTS (SELECT FROM @log@.log_consumers AS c
        WHERE c.partition_id = p_partition AND c.consumer_group = p_group)
    THEN
        INSERT INTO @log@.log_consumers (partition_id, consumer_group)
        VALUES (p_partition, p_group) ON CONFLICT DO NOTHING;
    END IF;

    SELECT c.* INTO consumer FROM @log@.log_consumers AS c
    WHERE c.partition_id = p_partition AND c.consumer_group = p_group FOR UPDATE SKIP LOCKED;
    IF NOT FOUND OR (consumer.batch_end IS NOT NULL AND consumer.lease_expires_at > stamp) THEN
        outcome := 'busy';
        RETURN;
    END IF;

    -- The segment that covers the wanted offset or, past a gap, the next one. Both look from log_start
    -- on: below it there are only the index entries of what retention deleted.
    first_offset := consumer.committed + 1;
    SELECT s.end_offset INTO last_offset FROM @log@.log_segments AS s
    WHERE s.partition_id = p_partition AND s.base_offset >= log_start
        AND s.base_offset <= first_offset
    ORDER BY s.base_offset DESC LIMIT 1;
    IF last_offset IS NULL OR last_offset < first_offset THEN
        SELECT s.base_offset, s.end_offset INTO first_offset, last_offset
        FROM @log@.log_segments AS s
        WHERE s.partition_id = p_partition AND s.base_offset >= GREATEST(first_offset, log_start)
        ORDER BY s.base_offset LIMIT 1;
    END IF;

    IF last_offset IS NULL THEN
        outcome := 'empty';
        IF consumer.committed < allocated OR consumer.batch_end IS NOT NULL THEN
            UPDATE @log@.log_consumers AS c SET committed = GREATEST(c.committed, allocated),
                batch_end = NULL, worker_id = NULL, lease_expires_at = NULL
            WHERE c.partition_id = p_partition AND c.consumer_group = p_group;
        END IF;
        RETURN;
    END IF;

    outcome := 'batch';
    IF p_lease_seconds > 0 THEN
        UPDATE @log@.log_consumers AS c SET batch_end = pop.last_offset, worker_id = p_worker,
            lease_acquired_at = stamp,
            lease_expires_at = stamp + make_interval(secs => p_lease_seconds),
            batch_retry_count = CASE
                WHEN c.attempt_offset = pop.first_offset THEN c.batch_retry_count + 1 ELSE 0 END,
            attempt_count = CASE
                WHEN c.attempt_offset = pop.first_offset THEN c.attempt_count + 1 ELSE 1 END,
            attempt_offset = pop.first_offset
        WHERE c.partition_id = p_partition AND c.consumer_group = p_group;
    ELSE
        UPDATE @log@.log_consumers AS c SET committed = pop.last_offset, batch_end = NULL,
            worker_id = NULL, lease_expires_at = NULL, lease_acquired_at = NULL,
            total_consumed = c.total_consumed + pop.last_offset - pop.first_offset + 1
        WHERE c.partition_id = p_partition AND c.consumer_group = p_group;
    END IF;
END
$broker$
