-- signature: retention_cleanup_delete_v1(uuid[], timestamptz, int)
--
-- The deleting half of the partition clean-up, on partitions that the caller has locked: locks
-- their consumer rows, asks again, deletes.
--
-- p_ids       locked partitions, ascending; NULL or empty: nothing
-- p_cutoff    as in log_partition_dead_v1
-- p_max_rows  how many sidecar rows are enough for one transaction (10,000 at least)
--
-- Returns one row: deleted, the partitions deleted; resume_after, the last partition dealt with
-- when the batch ended early, else NULL; spared, how many were left because a consumer row of
-- theirs is held; failed, how many could not be deleted for a reason of their own, and failure, the
-- SQLSTATE and message of the first.
--
-- A partition with a consumer row that somebody holds is spared: a pop, an ack or a dead-lettering
-- is at work there. A new consumer row cannot appear, since its foreign key waits for our partition
-- lock. The predicate is asked in a statement of its own, after both locks: what committed before
-- it vetoes. A streams-state or dead-letter row written later by someone who holds no consumer row
-- outlives its partition.
--
-- The cascade takes the consumer rows. Sidecar rows have no foreign key, so they go explicitly; one
-- history row each, named '__partition_deleted__', with 0 messages. Most sidecars are empty by
-- then; where the deduplication window is the longer one they are not, hence the bound, which
-- always lets one partition through.
--
-- A partition that something of a host's holds on to, a reference, a trigger that refuses, would be
-- met by every round, and is not to stop those behind it: where a delete fails for such a reason,
-- halves are tried until what fails is one partition, which is passed over. After 64 of them the
-- batch ends, since they are as many as cost a transaction enough.
--
-- Locks: consumer rows FOR UPDATE SKIP LOCKED, in key order. The caller's transaction; each try of
-- a delete is a subtransaction.
CREATE OR REPLACE FUNCTION @log@.retention_cleanup_delete_v1(
    p_ids uuid[],
    p_cutoff timestamptz,
    p_max_rows int,
    OUT deleted bigint,
    OUT resume_after uuid,
    OUT spared bigint,
    OUT failed bigint,
    OUT failure text
)
LANGUAGE plpgsql
VOLATILE
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
SET jit = off
AS $qretention$
DECLARE
    v_enough constant bigint := GREATEST(p_max_rows, 10000);
    v_failed_most constant bigint := 64;
    v_held uuid[];
    v_dead uuid[];
    v_done int := 0;        -- of those
    v_ends int[];           -- of the parts to try, the next one last
    v_to int;
    v_part record;
    v_sidecar bigint := 0;
BEGIN
    deleted := 0;
    spared := 0;
    failed := 0;
    IF COALESCE(cardinality(p_ids), 0) = 0 THEN
        RETURN;
    END IF;

    SELECT array_agg(consumer.partition_id) INTO v_held
    FROM (
        SELECT c.partition_id
        FROM @log@.log_consumers AS c
        WHERE c.partition_id = ANY (p_ids)
        ORDER BY c.partition_id, c.consumer_group
        FOR UPDATE SKIP LOCKED
    ) AS consumer;

    SELECT
        array_agg(candidate.id ORDER BY candidate.id)
            FILTER (WHERE candidate.free AND @log@.log_partition_dead_v1(candidate.id, p_cutoff)),
        count(*) FILTER (WHERE NOT candidate.free)
    INTO v_dead, spared
    FROM (
        SELECT
            wanted.id,
            (
                SELECT count(*)
                FROM @log@.log_consumers AS c
                WHERE c.partition_id = wanted.id
            ) <= COALESCE(held.consumers, 0) AS free
        FROM unnest(p_ids) AS wanted (id)
        LEFT JOIN (
            SELECT h.id, count(*) AS consumers
            FROM unnest(v_held) AS h (id)
            GROUP BY h.id
        ) AS held ON held.id = wanted.id
    ) AS candidate;
    IF v_dead IS NULL THEN
        RETURN;
    END IF;

    v_ends := ARRAY[cardinality(v_dead)];
    WHILE cardinality(v_ends) > 0 LOOP
        v_to := v_ends[cardinality(v_ends)];
        IF v_sidecar >= v_enough OR failed >= v_failed_most THEN
            resume_after := v_dead[v_done];
            EXIT;
        END IF;
        BEGIN
            SELECT r.gone, r.sidecar INTO v_part
            FROM @log@.retention_cleanup_remove_v1(v_dead[v_done + 1:v_to], v_enough - v_sidecar)
                AS r;
            deleted := deleted + v_part.gone;
            v_sidecar := v_sidecar + v_part.sidecar;
            v_done := v_done + v_part.gone;
        EXCEPTION WHEN data_exception OR integrity_constraint_violation OR plpgsql_error
                OR triggered_action_exception OR triggered_data_change_violation
                OR sql_routine_exception OR external_routine_exception
                OR external_routine_invocation_exception OR with_check_option_violation THEN
            IF v_done + 1 < v_to THEN
                v_ends := v_ends || (v_done + v_to) / 2;
                CONTINUE;
            END IF;
            failed := failed + 1;
            failure := COALESCE(failure,
                format('%s partition %s: %s', SQLSTATE, v_dead[v_to], SQLERRM));
            v_done := v_to;
        END;
        IF v_done = v_to THEN
            v_ends := v_ends[1:cardinality(v_ends) - 1];
        END IF;
    END LOOP;
END
$qretention$
