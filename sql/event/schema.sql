-- The schema of the event part: its functions, and its tables where no others are given.
-- Locks: none where it exists. One transaction.
DO $qretention$
BEGIN
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
    IF EXISTS (SELECT FROM pg_namespace AS n WHERE n.nspname = @event_literal@) THEN
        RETURN;
    END IF;
    CREATE SCHEMA @event@;
END
$qretention$
