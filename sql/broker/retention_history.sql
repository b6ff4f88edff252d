-- The audit of retention: a row for each step that deleted something. No foreign key on the
-- partition: the audit outlives what it describes. Bounded by the metrics purge. Locks: none where
-- the table exists; otherwise those of creating it. One transaction.
DO $qretention$
BEGIN
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
    IF to_regclass(format('%I.%I', @log_literal@, 'retention_history')) IS NOT NULL THEN
        RETURN;
    END IF;
    CREATE TABLE @log@.retention_history (
        id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
        partition_id uuid,
        messages_deleted integer DEFAULT 0,
        retention_type varchar(50),
        executed_at timestamptz DEFAULT now()
    );
    CREATE INDEX retention_history_executed_at_idx ON @log@.retention_history (executed_at);
END
$qretention$
