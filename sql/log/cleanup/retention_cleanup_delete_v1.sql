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
-- when the sidecar rows ended the batch early, else NULL; spared, how many were left because a
-- consumer row of theirs is held.
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
-- Locks: consumer rows FOR UPDATE SKIP LOCKED, in key order. The caller's transaction.
CREATE OR REPLACE FUNCTION @log@.retention_cleanup_delete_v1(
    p_ids uuid[],
    p_cutoff timestamptz,
    p_max_rows int,
    OUT deleted bigint,
    OUT resume_after uuid,
    OUT spared bigint
)
LANGUAGE plpgsql
VOLATILE
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
SET jit = off
AS $qretention$
DECLARE
    v_enough constant bigint := GREATEST(p_max_rows, 10000);
    v_held uuid[];
    v_dead uuid[];
    v_gone uuid[] := '{}';
    v_id uuid;
    v_rows bigint;
    v_sidecar bigint := 0;
BEGIN
    deleted := 0;
    spared := 0;
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

    FOREACH v_id IN ARRAY v_dead LOOP
        IF v_sidecar >= v_enough THEN
            resume_after := v_gone[cardinality(v_gone)];
            EXIT;
        END IF;
        DELETE FROM @log@.log_txns AS t WHERE t.partition_id = v_id;
        GET DIAGNOSTICS v_rows = ROW_COUNT;
        v_sidecar := v_sidecar + v_rows;
        v_gone := v_gone || v_id;
    END LOOP;

    DELETE FROM @log@.log_partitions AS p WHERE p.id = ANY (v_gone);
    GET DIAGNOSTICS deleted = ROW_COUNT;

    INSERT INTO @log@.retention_history (partition_id, messages_deleted, retention_type)
    SELECT gone.id, 0, '__partition_deleted__'
    FROM unnest(v_gone) AS gone (id);
END
$qretention$
