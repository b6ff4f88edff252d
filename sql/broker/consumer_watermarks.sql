-- Where a group last found a queue empty. Goes with its queue.
-- Locks: none where the table exists; otherwise those of creating it. One transaction.
DO $qretention$
BEGIN
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
    IF to_regclass(format('%I.%I', @log_literal@, 'consumer_watermarks')) IS NOT NULL THEN
        RETURN;
    END IF;
    CREATE TABLE @log@.consumer_watermarks (
        queue_id uuid NOT NULL REFERENCES @log@.queues (id) ON DELETE CASCADE,
        consumer_group text NOT NULL,
        last_empty_scan_at timestamptz,
        updated_at timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (queue_id, consumer_group)
    );
END
$qretention$
