-- signature: event_prune_chunk_v1(text, timestamptz, timestamptz, bigint, int)
--
-- Deletes a chunk of the deliveries of one event that has too many for one transaction, while the
-- event is still due. The event stays; it goes with the last of them, as any other event.
--
-- p_arm, p_now, p_cutoff  as event_prune_batch_v1
-- p_id    the event
-- p_rows  most deliveries to delete
--
-- Columns: deliveries deleted; skipped, 1 where the event, still due, or one of the chunk is locked
-- by somebody else. Both 0: the event is no longer due.
--
-- Locks as event_prune_batch_v1, of the chunk only. What is left may become owed again meanwhile:
-- then no further chunk goes, and what is left stays.
CREATE OR REPLACE FUNCTION @event@.event_prune_chunk_v1(
    p_arm text,
    p_now timestamptz,
    p_cutoff timestamptz,
    p_id bigint,
    p_rows int,
    OUT deliveries bigint,
    OUT skipped int
)
LANGUAGE plpgsql
VOLATILE
SET search_path = pg_catalog, pg_temp
SET row_security = off
SET enable_seqscan = off
SET enable_bitmapscan = off
SET max_parallel_workers_per_gather = 0
SET jit = off
AS $qretention$
DECLARE
    v_terminal constant text[] := @event@.event_prune_terminal_v1(p_arm);
    v_chunk bigint[];
    v_held bigint[];
    v_receivers text[];
    v_newest timestamptz[];
BEGIN
    deliveries := 0;
    skipped := 0;
    IF cardinality(@event@.event_prune_lock_v1(p_arm, p_now, p_cutoff, ARRAY[p_id])) = 0 THEN
        skipped := @event@.event_prune_missed_v1(p_arm, p_now, p_cutoff, ARRAY[p_id], '{}');
        RETURN;
    END IF;

    -- In the order of the index: in that of their ids each chunk would read all that are left.
    v_chunk := ARRAY(
        SELECT d.id FROM @delivery_table@ AS d WHERE d.event_id = p_id LIMIT p_rows
    );
    v_held := ARRAY(
        SELECT d.id FROM @delivery_table@ AS d
        WHERE d.id = ANY (v_chunk) AND d.event_id = p_id
        ORDER BY d.id
        FOR UPDATE SKIP LOCKED
    );
    IF cardinality(v_held) < cardinality(v_chunk) THEN
        skipped := 1;
        RETURN;
    END IF;
    -- Owed are never among the succeeded, so the history is not read for it; a status that is
    -- missing altogether would be, hence the chunk's own rows are looked at too.
    IF EXISTS (
        SELECT FROM @delivery_table@ AS d
        WHERE d.event_id = p_id AND d.status <> 'succeeded' AND d.status <> ALL (v_terminal)
    ) OR EXISTS (
        SELECT FROM @delivery_table@ AS d
        WHERE d.id = ANY (v_held) AND (d.status = ANY (v_terminal)) IS NOT TRUE
    ) THEN
        RETURN;
    END IF;

    SELECT d.deliveries, d.receivers, d.newest INTO deliveries, v_receivers, v_newest
    FROM @event@.event_prune_deliveries_v1(v_held) AS d;
    PERFORM @event@.event_prune_success_v1(v_receivers, v_newest);
    SET CONSTRAINTS ALL IMMEDIATE;
END
$qretention$
