-- How far behind the consumers of a queue are, a row a bucket. Goes with its queue.
-- Locks: none where the table exists; otherwise those of creating it. One transaction.
DO $qretention$
BEGIN
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
    IF to_regclass(format('%I.%I', @log_literal@, 'queue_lag_metrics')) IS NOT NULL THEN
        RETURN;
    END IF;
    CREATE TABLE @log@.queue_lag_metrics (
        id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
        bucket_time timestamptz NOT NULL,
        queue_id uuid REFERENCES @log@.queues (id) ON DELETE CASCADE,
        lag_ms bigint NOT NULL DEFAULT 0
    );
    CREATE INDEX queue_lag_metrics_bucket_time_idx ON @log@.queue_lag_metrics (bucket_time);
    CREATE INDEX queue_lag_metrics_queue_id_idx ON @log@.queue_lag_metrics (queue_id);
END
$qretention$
