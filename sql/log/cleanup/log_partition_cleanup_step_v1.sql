-- signature: log_partition_cleanup_step_v1(timestamptz, int)
--
-- One bounded step of the partition clean-up: deletes up to p_max_rows partitions that have been
-- silent since before p_cutoff, hold nothing and have no veto (log_partition_dead_v1).
--
-- p_cutoff    created and last written before this; NULL: nothing is deleted
-- p_max_rows  most partitions to delete; NULL and anything below 1 count as 1
--
-- Returns {"deleted": partitions deleted, "done": call no more now}. Stateless: each call scans
-- from the first partition, and partitions that are vetoed cost it a look each time. So `done` is
-- true also when a full batch was spared whole: the next call would only meet the same ones. What
-- cannot be deleted for a reason of its own is passed over; a batch of nothing else, or with 64 of them
-- before anything else, raises it.
-- log_partition_cleanup_step_v2 has a cursor.
--
-- Locks: partition rows, then their consumer rows, both FOR UPDATE SKIP LOCKED in key order; one
-- transaction. Deleting a row cascades to its consumers. Expects READ COMMITTED. Refuses with QR003
-- when the streams engine came or went since the install.
CREATE OR REPLACE FUNCTION @log@.log_partition_cleanup_step_v1(
    p_cutoff timestamptz,
    p_max_rows int
)
RETURNS jsonb
LANGUAGE plpgsql
VOLATILE
SET search_path = pg_catalog, pg_temp
AS $qretention$
DECLARE
    v_max_rows constant int := GREATEST(COALESCE(p_max_rows, 1), 1);
    v_ids uuid[];
    v_batch record;
BEGIN
    IF p_cutoff IS NULL THEN
        RETURN jsonb_build_object('deleted', 0, 'done', true);
    END IF;
    v_ids := (@log@.retention_cleanup_lock_v1(p_cutoff, NULL::uuid, NULL::uuid, v_max_rows)).ids;
    IF v_ids IS NULL THEN
        RETURN jsonb_build_object('deleted', 0, 'done', true);
    END IF;
    SELECT b.deleted, b.resume_after, b.failed, b.failure INTO v_batch
    FROM @log@.retention_cleanup_delete_v1(v_ids, p_cutoff, v_max_rows) AS b;
    IF v_batch.failed > 0 AND v_batch.deleted = 0 THEN
        RAISE EXCEPTION '%', substr(v_batch.failure, 7)
            USING ERRCODE = left(v_batch.failure, 5),
                HINT = 'Remove what holds on to the partition, or what refuses its deletion.';
    END IF;
    RETURN jsonb_build_object(
        'deleted', v_batch.deleted,
        'done', v_batch.deleted = 0
            OR (cardinality(v_ids) < v_max_rows AND v_batch.resume_after IS NULL)
    );
END
$qretention$
