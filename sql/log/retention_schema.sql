-- Which parts are installed here, at which version. Read by the library before anything else.
-- Locks: none where the table exists. One transaction.
DO $qretention$
BEGIN
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
    IF to_regclass(format('%I.%I', @log_literal@, 'retention_schema')) IS NOT NULL THEN
        RETURN;
    END IF;
    CREATE TABLE @log@.retention_schema (
        part text PRIMARY KEY,
        version integer NOT NULL,
        installed_at timestamptz NOT NULL DEFAULT now()
    );
END
$qretention$
