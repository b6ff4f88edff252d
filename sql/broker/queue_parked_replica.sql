-- Long polls parked on a queue by each replica, a row a bucket. Goes with its queue.
-- Locks: none where the table exists; otherwise those of creating it. One transaction.
DO $qretention$
BEGIN
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
    IF to_regclass(format('%I.%I', @log_literal@, 'queue_parked_replica')) IS NOT NULL THEN
        RETURN;
    END IF;
    CREATE TABLE @log@.queue_parked_replica (
        id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
        bucket_time timestamptz NOT NULL,
        queue_id uuid REFERENCES @log@.queues (id) ON DELETE CASCADE,
        replica text,
        parked integer NOT NULL DEFAULT 0
    );
    CREATE INDEX queue_parked_replica_bucket_time_idx ON @log@.queue_parked_replica (bucket_time);
    CREATE INDEX queue_parked_replica_queue_id_idx ON @log@.queue_parked_replica (queue_id);
END
$qretention$
