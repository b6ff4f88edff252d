-- Floors of partitions that were found to hold nothing deletable, or are unknown, brought up to
-- date.
--
-- $1 ids uuid[]          a few hundred at most: empty ones are locked until the end
-- $2 clock timestamptz   the cycle's clock
--
-- Columns, one row for each that changed or needs a word: partition_id uuid, queue_id uuid, state
-- text (raised, lowered, pinned, released, moved, settled, added, removed, busy, or NULL),
-- consumer_group text (of a pinned one), due bool (a step would delete now), future bool (head
-- dated in the future).
--
-- Locks and transaction: those of the function; it waits for nobody.
SELECT r.partition_id, r.queue_id, r.state, r.consumer_group, r.due, r.future
FROM @log@.retention_floors_refresh_v1($1::pg_catalog.uuid[], $2::pg_catalog.timestamptz) AS r
