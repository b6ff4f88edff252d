-- Queues and their retention policy. The four policy columns are nullable and unchecked on purpose:
-- NULL, zero and negative all mean "off". Locks: none where the table exists; otherwise those of
-- creating it. One transaction.
DO $qretention$
BEGIN
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
    IF to_regclass(format('%I.%I', @log_literal@, 'queues')) IS NOT NULL THEN
        RETURN;
    END IF;
    CREATE TABLE @log@.queues (
        id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
        name varchar(255) NOT NULL,
        tenant_id uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000001',
        retention_enabled boolean DEFAULT false,
        retention_seconds integer DEFAULT 0,
        completed_retention_seconds integer DEFAULT 0,
        max_wait_time_seconds integer DEFAULT 0,
        dedup_window_seconds integer NOT NULL DEFAULT 3600,
        created_at timestamptz DEFAULT now(),
        UNIQUE (tenant_id, name)
    );
END
$qretention$
