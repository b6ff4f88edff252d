-- ack(partition, group, worker): the worker is done with the batch that it leased.
-- Needs the same worker and a live lease: who comes late gets false, and the batch comes again.
-- Locks: the consumer row. One transaction.
CREATE OR REPLACE FUNCTION @broker@.ack(p_partition uuid, p_group text, p_worker text)
RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $broker$
BEGIN
    UPDATE @log@.log_consumers AS c SET committed = c.batch_end,
        total_consumed = c.total_consumed + c.batch_end - c.attempt_offset + 1,
        batch_end = NULL, worker_id = NULL, lease_expires_at = NULL,
        batch_retry_count = 0, attempt_offset = NULL, attempt_count = 0
    WHERE c.partition_id = p_partition AND c.consumer_group = p_group
        AND c.worker_id = p_worker AND c.batch_end IS NOT NULL
        AND c.lease_expires_at > clock_timestamp();
    RETURN FOUND;
END
$broker$
