-- seek(partition, group, offset): the group reads on from `offset`, backwards too. Drops its lease.
-- Makes the consumer row if need be: a seek to 0 is how a group that has not read yet registers.
-- Locks: the consumer row. One transaction.
CREATE OR REPLACE FUNCTION @broker@.seek(p_partition uuid, p_group text, p_offset bigint)
RETURNS void
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $broker$
    INSERT INTO @log@.log_consumers (partition_id, consumer_group, committed)
    VALUES (p_partition, p_group, p_offset - 1)
    ON CONFLICT (partition_id, consumer_group) DO UPDATE SET committed = excluded.committed,
        batch_end = NULL, worker_id = NULL, lease_expires_at = NULL, lease_acquired_at = NULL
$broker$
