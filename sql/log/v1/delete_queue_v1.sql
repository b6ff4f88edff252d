-- signature: delete_queue_v1(text, uuid)
--
-- Removes a queue and everything in it, dead letters included. An explicit act: retention never
-- calls it.
--
-- p_name    the queue's name
-- p_tenant  whose it is; default: the tenant of hosts that have only one. NULL names no queue.
--
-- Returns {"deleted": true, "queue": p_name, "existed": whether there was one}.
--
-- Sidecar rows and dead letters go first and explicitly, since they have no foreign key that a
-- cascade could follow; then the queue, whose cascade takes partitions, segments, cursors and
-- per-queue records. History and traces stay. Streams state stays too: its engine owns it.
--
-- Locks: the queue row, then its partitions in ascending id like every multi-partition locker,
-- before anything is deleted; until the transaction ends. One transaction, as large as the queue.
-- Runs as its caller.
CREATE OR REPLACE FUNCTION @log@.delete_queue_v1(
    p_name text,
    p_tenant uuid DEFAULT '00000000-0000-0000-0000-000000000001'
)
RETURNS jsonb
LANGUAGE plpgsql
VOLATILE
SET search_path = pg_catalog, pg_temp
AS $qretention$
DECLARE
    v_queue uuid;
    v_partitions uuid[];
BEGIN
    SELECT q.id INTO v_queue
    FROM @log@.queues AS q
    WHERE q.name = p_name AND q.tenant_id = p_tenant
    FOR UPDATE;
    IF NOT FOUND THEN
        RETURN jsonb_build_object('deleted', true, 'queue', p_name, 'existed', false);
    END IF;
    SELECT array_agg(locked.id) INTO v_partitions
    FROM (
        SELECT p.id
        FROM @log@.log_partitions AS p
        WHERE p.queue_id = v_queue
        ORDER BY p.id
        FOR UPDATE
    ) AS locked;
    DELETE FROM @log@.log_txns AS t WHERE t.partition_id = ANY (v_partitions);
    DELETE FROM @log@.log_dlq AS d WHERE d.partition_id = ANY (v_partitions);
    DELETE FROM @log@.queues AS q WHERE q.id = v_queue;
    RETURN jsonb_build_object('deleted', true, 'queue', p_name, 'existed', true);
END
$qretention$
