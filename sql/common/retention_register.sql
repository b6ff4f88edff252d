-- The functions that this install created, and what they looked like when it did. A function of the
-- same name that is not here, or no longer looks so, is somebody else's and is never replaced.
-- Locks: none where the table exists. One transaction.
DO $qretention$
BEGIN
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
    IF to_regclass(format('%I.%I', @part_literal@, 'retention_register')) IS NOT NULL THEN
        RETURN;
    END IF;
    CREATE TABLE @part@.retention_register (
        signature text PRIMARY KEY,
        source_md5 text NOT NULL,
        version integer NOT NULL,
        installed_at timestamptz NOT NULL DEFAULT now(),
        statement_md5 text NOT NULL
    );
END
$qretention$
