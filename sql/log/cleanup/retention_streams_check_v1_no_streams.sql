-- signature: retention_streams_check_v1()
--
-- Refuses with QR003 once a state table has appeared: whether there is a streams engine was settled
-- at install. Installed where it has no state table.
--
-- Locks: none. Reads the catalog.
CREATE OR REPLACE FUNCTION @log@.retention_streams_check_v1()
RETURNS void
LANGUAGE plpgsql
STABLE
SET search_path = pg_catalog, pg_temp
AS $qretention$
BEGIN
    IF EXISTS (
        SELECT
        FROM pg_class AS c
        JOIN pg_namespace AS n ON n.oid = c.relnamespace
        WHERE c.relname = 'state' AND c.relkind IN ('r', 'p') AND n.nspname = @streams_literal@
    ) THEN
        RAISE EXCEPTION 'the state table of the streams schema % has appeared since the install',
            @streams_literal@
            USING ERRCODE = 'QR003',
                HINT = 'Install the part "log" again, so that the clean-up takes it into account.';
    END IF;
END
$qretention$
