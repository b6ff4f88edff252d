-- signature: retention_cleanup_remove_v1(uuid[], bigint)
--
-- Deletes partitions of which the clean-up has decided that they go, and what belongs to them.
--
-- p_ids     the partitions, locked with their consumers, ascending
-- p_enough  how many sidecar rows end the batch; the partition that reaches it still goes
--
-- Returns one row: gone, how many of the first p_ids went; sidecar, the sidecar rows of these.
-- Raises where a trigger of a host's keeps one that should go.
--
-- Locks: the rows it deletes. The caller's transaction, whose constraints are immediate from here on.
CREATE OR REPLACE FUNCTION @log@.retention_cleanup_remove_v1(
    p_ids uuid[],
    p_enough bigint,
    OUT gone int,
    OUT sidecar bigint
)
LANGUAGE plpgsql
VOLATILE
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
SET jit = off
AS $qretention$
DECLARE
    v_rows bigint;
BEGIN
    gone := 0;
    sidecar := 0;
    WHILE gone < cardinality(p_ids) AND sidecar < p_enough LOOP
        gone := gone + 1;
        DELETE FROM @log@.log_txns AS t WHERE t.partition_id = p_ids[gone];
        GET DIAGNOSTICS v_rows = ROW_COUNT;
        sidecar := sidecar + v_rows;
    END LOOP;
    DELETE FROM @log@.log_partitions AS p WHERE p.id = ANY (p_ids[1:gone]);
    GET DIAGNOSTICS v_rows = ROW_COUNT;
    IF v_rows < gone THEN
        RAISE EXCEPTION 'a trigger keeps it' USING ERRCODE = 'triggered_data_change_violation';
    END IF;
    INSERT INTO @log@.retention_history (partition_id, messages_deleted, retention_type)
    SELECT dead.id, 0, '__partition_deleted__'
    FROM unnest(p_ids[1:gone]) AS dead (id);
    -- What a host's deferred constraint holds fails here, where one partition can be told by it, and
    -- not at the commit.
    SET CONSTRAINTS ALL IMMEDIATE;
END
$qretention$
