-- signature: retention_streams_state_v1(uuid, boolean)
--
-- p_pid itself if it has streams state, else NULL: the clean-up's veto. With p_next, the lowest
-- partition id above p_pid that has some. Installed where the streams engine has its state table.
--
-- Locks: none. One index probe.
CREATE OR REPLACE FUNCTION @log@.retention_streams_state_v1(
    p_pid uuid,
    p_next boolean
)
RETURNS uuid
LANGUAGE plpgsql
STABLE
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
AS $qretention$
BEGIN
    IF p_next THEN
        RETURN (
            SELECT t.partition_id
            FROM @streams@.state AS t
            WHERE t.partition_id > p_pid
            ORDER BY t.partition_id
            LIMIT 1
        );
    END IF;
    RETURN (
        SELECT t.partition_id
        FROM @streams@.state AS t
        WHERE t.partition_id = p_pid
        LIMIT 1
    );
END
$qretention$
