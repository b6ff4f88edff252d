-- Samples of the hosts' own load.
-- Locks: none where the table exists; otherwise those of creating it. One transaction.
DO $qretention$
BEGIN
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
    IF to_regclass(format('%I.%I', @log_literal@, 'system_metrics')) IS NOT NULL THEN
        RETURN;
    END IF;
    CREATE TABLE @log@.system_metrics (
        id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
        "timestamp" timestamptz NOT NULL,
        hostname text,
        metrics jsonb
    );
    CREATE INDEX system_metrics_timestamp_idx ON @log@.system_metrics ("timestamp");
END
$qretention$
