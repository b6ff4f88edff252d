-- signature: log_partition_cleanup_step_v2(timestamptz, int, uuid)
--
-- One bounded step of the partition clean-up that also bounds what it scans: it looks at the next
-- few thousand partitions after a cursor, and deletes up to p_max_rows of them.
--
-- p_cutoff    created and last written before this; NULL: nothing is deleted
-- p_max_rows  most partitions to delete; NULL and anything below 1 count as 1
-- p_after     `last` of the step before; NULL: begin with the first partition
--
-- Returns {"deleted": partitions deleted, "last": the cursor for the next call, "done": the end was
-- reached, "spared": how many were passed over because somebody held their row or a consumer's,
-- "orphans": how many partitions of this stretch are gone and have left a dead letter or streams
-- state behind, "orphan": the first of them, "failed": how many could not be deleted for a reason
-- of their own, "failure": the SQLSTATE and message of the first}. `last` is NULL when done, so that giving it back
-- begins the next round. Each call moves the cursor, also when it deleted nothing: call until done,
-- whatever `deleted` says. Vetoed and spared partitions are passed over once a round and hide
-- nothing behind them. Orphans are told, never deleted.
--
-- Locks and transaction: as log_partition_cleanup_step_v1. Refuses with QR004 in a transaction that
-- is not READ COMMITTED, since the second look needs a new snapshot, and with QR003 when the
-- streams engine came or went.
CREATE OR REPLACE FUNCTION @log@.log_partition_cleanup_step_v2(
    p_cutoff timestamptz,
    p_max_rows int,
    p_after uuid
)
RETURNS jsonb
LANGUAGE plpgsql
VOLATILE
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
AS $qretention$
DECLARE
    v_max_rows constant int := GREATEST(COALESCE(p_max_rows, 1), 1);
    v_scan constant bigint := GREATEST(4 * v_max_rows::bigint, 2000);
    v_from constant uuid := COALESCE(p_after, '00000000-0000-0000-0000-000000000000');
    v_upto uuid;
    v_last uuid;
    v_locked record;
    v_batch record;
    v_orphans record;
BEGIN
    IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
        RAISE EXCEPTION 'the partition clean-up cannot run in a % transaction',
            current_setting('transaction_isolation')
            USING ERRCODE = 'QR004',
                HINT = 'Begin the transaction with ISOLATION LEVEL READ COMMITTED.';
    END IF;
    IF p_cutoff IS NULL THEN
        RETURN jsonb_build_object('deleted', 0, 'last', NULL, 'done', true,
            'spared', 0, 'orphans', 0, 'orphan', NULL, 'failed', 0, 'failure', NULL);
    END IF;

    v_upto := (
        SELECT p.id
        FROM @log@.log_partitions AS p
        WHERE p.id >= v_from
          AND (p_after IS NULL OR p.id > p_after)
        ORDER BY p.id
        OFFSET v_scan - 1
        LIMIT 1
    );
    SELECT l.ids, l.spared INTO v_locked
    FROM @log@.retention_cleanup_lock_v1(p_cutoff, p_after, v_upto, v_max_rows) AS l;
    SELECT b.deleted, b.resume_after, b.spared, b.failed, b.failure INTO v_batch
    FROM @log@.retention_cleanup_delete_v1(v_locked.ids, p_cutoff, v_max_rows) AS b;

    -- Where this look ended: at the sidecar bound, at a full batch, or at the end of the range.
    v_last := COALESCE(
        v_batch.resume_after,
        CASE WHEN cardinality(v_locked.ids) = v_max_rows THEN v_locked.ids[v_max_rows] END,
        v_upto
    );
    SELECT o.orphans, o.orphan INTO v_orphans
    FROM @log@.retention_orphans_v1(p_after, v_last) AS o;
    RETURN jsonb_build_object(
        'deleted', v_batch.deleted,
        'last', v_last,
        'done', v_last IS NULL,
        'spared', v_locked.spared + v_batch.spared,
        'orphans', v_orphans.orphans,
        'orphan', v_orphans.orphan,
        'failed', v_batch.failed,
        'failure', v_batch.failure
    );
END
$qretention$
