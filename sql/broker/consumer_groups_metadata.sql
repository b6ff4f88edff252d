-- The durable subscription record of a group on a queue. Goes with its queue.
-- Locks: none where the table exists; otherwise those of creating it. One transaction.
DO $qretention$
BEGIN
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
    IF to_regclass(format('%I.%I', @log_literal@, 'consumer_groups_metadata')) IS NOT NULL THEN
        RETURN;
    END IF;
    CREATE TABLE @log@.consumer_groups_metadata (
        id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
        queue_id uuid REFERENCES @log@.queues (id) ON DELETE CASCADE,
        consumer_group text NOT NULL,
        subscription_mode text NOT NULL DEFAULT 'all',
        subscription_timestamp timestamptz,
        created_at timestamptz NOT NULL DEFAULT now(),
        UNIQUE (queue_id, consumer_group)
    );
END
$qretention$
