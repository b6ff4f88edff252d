-- signature: retention_streams_state_v1(uuid, boolean)
--
-- NULL: no partition has streams state. Installed where the streams engine has no state table; its
-- counterpart tells what the parameters mean there.
--
-- Locks: none. Reads nothing.
CREATE OR REPLACE FUNCTION @log@.retention_streams_state_v1(
    p_pid uuid,
    p_next boolean
)
RETURNS uuid
LANGUAGE plpgsql
STABLE
SET search_path = pg_catalog, pg_temp
AS $qretention$
BEGIN
    RETURN NULL;
END
$qretention$
