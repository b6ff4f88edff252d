-- Dead letters. Retention never purges them, and one of them keeps its partition.
-- No foreign key on the partition.
-- Locks: none where the table exists; otherwise those of creating it. One transaction.
DO $qretention$
BEGIN
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
    IF to_regclass(format('%I.%I', @log_literal@, 'log_dlq')) IS NOT NULL THEN
        RETURN;
    END IF;
    CREATE TABLE @log@.log_dlq (
        id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
        partition_id uuid NOT NULL,
        consumer_group text,
        "offset" bigint,
        message_id uuid,
        transaction_id text,
        payload jsonb,
        error text,
        retry_count integer NOT NULL DEFAULT 0,
        failed_at timestamptz NOT NULL DEFAULT now()
    );
    CREATE INDEX log_dlq_partition_id_failed_at_idx
        ON @log@.log_dlq (partition_id, failed_at DESC);
END
$qretention$
