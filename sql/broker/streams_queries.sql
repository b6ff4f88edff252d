-- Streams queries.
-- Locks: none where the table exists; otherwise those of creating it. One transaction.
DO $qretention$
BEGIN
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
    IF to_regclass(format('%I.%I', @streams_literal@, 'queries')) IS NOT NULL THEN
        RETURN;
    END IF;
    CREATE TABLE @streams@.queries (
        id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
        name text NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now()
    );
END
$qretention$
