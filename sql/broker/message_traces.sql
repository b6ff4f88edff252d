-- Diagnostic records of messages already consumed. Nothing purges them, and they veto nothing.
-- Locks: none where the table exists; otherwise those of creating it. One transaction.
DO $qretention$
BEGIN
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
    IF to_regclass(format('%I.%I', @log_literal@, 'message_traces')) IS NOT NULL THEN
        RETURN;
    END IF;
    CREATE TABLE @log@.message_traces (
        id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
        partition_id uuid,
        transaction_id text,
        consumer_group text,
        event_type text,
        data jsonb,
        created_at timestamptz NOT NULL DEFAULT now()
    );
    CREATE INDEX message_traces_partition_id_transaction_id_idx
        ON @log@.message_traces (partition_id, transaction_id);
END
$qretention$
