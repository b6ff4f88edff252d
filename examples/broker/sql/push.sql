-- push(partition, count, hashes, blob): appends `count` messages as one segment and one sidecar row.
-- hashes holds 16 bytes a message. If the queue has a dedup window and one of the hashes was pushed
-- inside it, nothing is written and base_offset is NULL. A partition that is gone raises 23503: the
-- caller provisions it anew and pushes again.
--
-- The stamp is taken after the lock, so created_at rises with base_offset; the probe begins at
-- txns_start, which stands still while the lock is held.
-- Locks: the partition row until commit. One transaction.
CREATE OR REPLACE FUNCTION @broker@.push(p_partition uuid, p_count integer, p_hashes bytea,
    p_blob bytea, OUT base_offset bigint, OUT end_offset bigint)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $broker$
DECLARE
    dedup_window interval;
    part record;
    stamp timestamptz;
BEGIN
    SELECT make_interval(secs => q.dedup_window_seconds) INTO dedup_window
    FROM @log@.log_partitions AS p JOIN @log@.queues AS q ON q.id = p.queue_id
    WHERE p.id = p_partition;

    IF dedup_window > interval '0' THEN
        SELECT p.last_offset, p.txns_start INTO part FROM @log@.log_partitions AS p
        WHERE p.id = p_partition FOR UPDATE;
    ELSE
        SELECT p.last_offset, p.txns_start INTO part FROM @log@.log_partitions AS p
        WHERE p.id = p_partition FOR NO KEY UPDATE;
    END IF;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'partition % is gone', p_partition
            USING ERRCODE = 'foreign_key_violation', HINT = 'Provision it anew and push again.';
    END IF;
    stamp := clock_timestamp();

    IF dedup_window > interval '0' AND EXISTS (
        SELECT FROM @log@.log_txns AS t
            CROSS JOIN generate_series(1, length(t.hashes), 16) AS known (at)
        WHERE t.partition_id = p_partition AND t.base_offset >= part.txns_start
            AND t.created_at > stamp - dedup_window
            AND substring(t.hashes FROM known.at FOR 16) IN (
                SELECT substring(p_hashes FROM pushed.at FOR 16)
                FROM generate_series(1, length(p_hashes), 16) AS pushed (at)))
    THEN
        RETURN;
    END IF;

    base_offset := part.last_offset + 1;
    end_offset := part.last_offset + p_count;
    UPDATE @log@.log_partitions AS p SET last_offset = end_offset,
        last_write_at = CASE
            WHEN p.last_write_at > stamp - interval '1 second' THEN p.last_write_at ELSE stamp END
    WHERE p.id = p_partition;
    INSERT INTO @log@.log_segments (partition_id, base_offset, end_offset, created_at, blob)
    VALUES (p_partition, push.base_offset, push.end_offset, stamp, p_blob);
    INSERT INTO @log@.log_txns (partition_id, base_offset, end_offset, created_at, hashes)
    VALUES (p_partition, push.base_offset, push.end_offset, stamp, p_hashes);
END
$broker$
