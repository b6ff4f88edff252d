-- provision(queue, partition): the id of a queue's partition, which it makes where it is missing.
-- A queue that is missing is made without any policy.
-- Locks: none that others wait for. One transaction.
CREATE OR REPLACE FUNCTION @broker@.provision(p_queue text, p_partition text)
RETURNS uuid
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $broker$
DECLARE
    found_queue uuid;
    found_partition uuid;
BEGIN
    INSERT INTO @log@.queues (name) VALUES (p_queue) ON CONFLICT DO NOTHING;
    SELECT q.id INTO found_queue FROM @log@.queues AS q
    WHERE q.name = p_queue AND q.tenant_id = '00000000-0000-0000-0000-000000000001';

    INSERT INTO @log@.log_partitions (queue_id, name) VALUES (found_queue, p_partition)
    ON CONFLICT DO NOTHING;
    SELECT p.id INTO found_partition FROM @log@.log_partitions AS p
    WHERE p.queue_id = found_queue AND p.name = p_partition;
    RETURN found_partition;
END
$broker$
