-- Which parts are installed here, at which version. Read by the library before anything else.
-- Locks: none where the table exists. One transaction.
DO $qretention$
BEGIN
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
    IF to_regclass(format('%I.%I', @part_literal@, 'retention_schema')) IS NOT NULL THEN
        RETURN;
    END IF;
    CREATE TABLE @part@.retention_schema (
        part text PRIMARY KEY,
        version integer NOT NULL,
        installed_at timestamptz NOT NULL DEFAULT now()
    );
END
$qretention$
