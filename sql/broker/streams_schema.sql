-- The schema of the streams engine, whose state vetoes the clean-up of a partition. Looks first,
-- since CREATE SCHEMA IF NOT EXISTS wants the right to create schemas even where there is nothing
-- to create. Locks: none that others wait for. One transaction.
DO $qretention$
BEGIN
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
    IF EXISTS (SELECT FROM pg_namespace WHERE nspname = @streams_literal@) THEN
        RETURN;
    END IF;
    CREATE SCHEMA @streams@;
END
$qretention$
