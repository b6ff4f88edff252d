-- signature: retention_floors_inserted_v1()
--
-- Statement-level trigger function: a new partition's floors are unknown until it is looked at.
--
-- SECURITY DEFINER, the one function here that is: it runs in the statements of whoever may create
-- partitions, roles that this install cannot list and that come after it, and a push must never
-- fail for want of a grant. It takes no argument, reads nothing but the rows just inserted, writes
-- nothing but their floors, names every object in full and pins its path.
--
-- Nor may a push fail for any other reason of ours, so an error is logged at the server and passed
-- over: the walk adds the missing row. A row left by a dropped partition of the same id is taken
-- over.
--
-- Locks: the floors rows it writes. Transaction: the inserting one.
CREATE OR REPLACE FUNCTION @log@.retention_floors_inserted_v1()
RETURNS trigger
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $qretention$
BEGIN
    INSERT INTO @log@.retention_floors AS f (partition_id, queue_id, look_xid)
    SELECT i.id, i.queue_id, pg_current_xact_id()::text::bigint
    FROM inserted AS i
    ORDER BY i.id
    ON CONFLICT (partition_id) DO UPDATE
    SET queue_id = excluded.queue_id,
        segments_floor = '-infinity',
        txns_floor = '-infinity',
        look_xid = excluded.look_xid,
        pinned_since = NULL,
        pinned_group = NULL,
        pinned_offset = NULL;
    RETURN NULL;
EXCEPTION WHEN OTHERS THEN
    RAISE LOG 'retention floors of new partitions not written, the walk will add them: % (%)',
        SQLERRM, SQLSTATE;
    RETURN NULL;
END
$qretention$
