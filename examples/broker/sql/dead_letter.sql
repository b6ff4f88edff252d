-- dead_letter(partition, group, worker, offset, error): gives up one message of the leased batch.
-- It goes to log_dlq, and the batch is acked. The consumer row is locked first, so a clean-up of the
-- partition at that moment finds it locked and spares the partition.
-- Locks: the consumer row. One transaction. Returns false without a live lease.
CREATE OR REPLACE FUNCTION @broker@.dead_letter(p_partition uuid, p_group text, p_worker text,
    p_offset bigint, p_error text)
RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $broker$
DECLARE
    attempts integer;
BEGIN
    SELECT c.attempt_count INTO attempts FROM @log@.log_consumers AS c
    WHERE c.partition_id = p_partition AND c.consumer_group = p_group
        AND c.worker_id = p_worker AND c.batch_end >= p_offset
        AND c.lease_expires_at > clock_timestamp()
    FOR UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO @log@.log_dlq (partition_id, consumer_group, "offset", message_id, error, retry_count)
    VALUES (p_partition, p_group, p_offset, gen_random_uuid(), p_error, attempts - 1);
    RETURN @broker@.ack(p_partition, p_group, p_worker);
END
$broker$
