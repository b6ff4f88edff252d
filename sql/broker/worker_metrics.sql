-- Counters of the broker's workers, a row a worker and bucket.
-- Locks: none where the table exists; otherwise those of creating it. One transaction.
DO $qretention$
BEGIN
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
    IF to_regclass(format('%I.%I', @log_literal@, 'worker_metrics')) IS NOT NULL THEN
        RETURN;
    END IF;
    CREATE TABLE @log@.worker_metrics (
        id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
        bucket_time timestamptz NOT NULL,
        hostname text,
        worker_id text,
        push_count bigint NOT NULL DEFAULT 0,
        pop_count bigint NOT NULL DEFAULT 0,
        ack_count bigint NOT NULL DEFAULT 0
    );
    CREATE INDEX worker_metrics_bucket_time_idx ON @log@.worker_metrics (bucket_time);
END
$qretention$
