-- signature: retention_orphans_v1(uuid, uuid)
--
-- Partitions that are gone and have left a dead letter or streams state behind. Neither table has a
-- foreign key: a row written while its partition was being deleted, by someone who holds no
-- consumer row, or left by a queue that was removed by hand, outlives it, and its readers find it
-- no more.
--
-- p_after  only ids above this one; NULL: from the first
-- p_upto   only ids up to this one; NULL: to the last
--
-- Returns one row: orphans, how many partition ids; orphan, the lowest of them, NULL where there is
-- none. At most 1000 ids of each table are looked at, from the lowest: each costs two index probes,
-- however many rows it has, and a report needs no more.
--
-- Locks: none. Deletes nothing.
CREATE OR REPLACE FUNCTION @log@.retention_orphans_v1(
    p_after uuid,
    p_upto uuid,
    OUT orphans bigint,
    OUT orphan uuid
)
LANGUAGE plpgsql
STABLE
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
AS $qretention$
DECLARE
    v_most constant int := 1000;
    v_after constant uuid := COALESCE(p_after, '00000000-0000-0000-0000-000000000000');
    v_upto constant uuid := COALESCE(p_upto, 'ffffffff-ffff-ffff-ffff-ffffffffffff');
BEGIN
    WITH RECURSIVE letter (id, looks) AS (
        SELECT v_after, 0
        UNION ALL
        SELECT
            (
                SELECT d.partition_id
                FROM @log@.log_dlq AS d
                WHERE d.partition_id > l.id
                ORDER BY d.partition_id
                LIMIT 1
            ),
            l.looks + 1
        FROM letter AS l
        WHERE l.id < v_upto AND l.looks < v_most
    ), state (id, looks) AS (
        SELECT v_after, 0
        UNION ALL
        SELECT @log@.retention_streams_state_v1(s.id, true), s.looks + 1
        FROM state AS s
        WHERE s.id < v_upto AND s.looks < v_most
    )
    SELECT count(*), (array_agg(behind.id ORDER BY behind.id))[1]
    INTO orphans, orphan
    FROM (
        SELECT l.id FROM letter AS l WHERE l.looks > 0
        UNION
        SELECT s.id FROM state AS s WHERE s.looks > 0
    ) AS behind
    WHERE behind.id <= v_upto
      AND NOT EXISTS (
        SELECT FROM @log@.log_partitions AS p
        WHERE p.id = behind.id
        OFFSET 0
    );
END
$qretention$
