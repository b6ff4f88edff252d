-- The schema of the segment log. Looks first, since CREATE SCHEMA IF NOT EXISTS wants the right to
-- create schemas even where there is nothing to create. Locks: none that others wait for. One
-- transaction.
DO $qretention$
BEGIN
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
    IF EXISTS (SELECT FROM pg_namespace WHERE nspname = @log_literal@) THEN
        RETURN;
    END IF;
    CREATE SCHEMA @log@;
END
$qretention$
