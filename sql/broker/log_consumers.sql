-- Cursors of consumer groups: the next offset wanted is committed + 1.
-- Updated by every pop and ack, hence half-empty pages and no truncation.
-- Locks: none where the table exists; otherwise those of creating it. One transaction.
DO $qretention$
BEGIN
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
    IF to_regclass(format('%I.%I', @log_literal@, 'log_consumers')) IS NOT NULL THEN
        RETURN;
    END IF;
    CREATE TABLE @log@.log_consumers (
        partition_id uuid NOT NULL REFERENCES @log@.log_partitions (id) ON DELETE CASCADE,
        consumer_group text NOT NULL DEFAULT '__QUEUE_MODE__',
        committed bigint NOT NULL DEFAULT -1,
        batch_end bigint,
        worker_id text,
        lease_expires_at timestamptz,
        lease_acquired_at timestamptz,
        batch_retry_count integer NOT NULL DEFAULT 0,
        attempt_offset bigint,
        attempt_count integer NOT NULL DEFAULT 0,
        total_consumed bigint NOT NULL DEFAULT 0,
        created_at timestamptz DEFAULT now(),
        PRIMARY KEY (partition_id, consumer_group)
    )
    WITH (fillfactor = 50, vacuum_truncate = off);
END
$qretention$
