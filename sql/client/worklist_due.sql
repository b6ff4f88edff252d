-- The work list of mode `due`, a page at a time: partitions with something to delete now.
--
-- $1 clock timestamptz   the cycle's one clock; NULL: the server's now(), and the answer tells it
-- $2 cap int4            most partitions of one queue in this page, up to 200
-- $3 after uuid          the queue to begin after: filed_under of the last row before; NULL: the
-- first $4 exclude uuid[]      partitions to leave out: backed off, or settled for this cycle;
-- NULL: none
-- $5..$9 hints           int8, uuid[], int8[], timestamptz[], timestamptz[]: the last hints of this
--                        connection, as they came (binary); NULL: a full look
--
-- Columns: those of every work list, then filed_under uuid, then the hints: hint_look int8,
-- hint_queues uuid[], hint_policies int8[], hint_segments timestamptz[], hint_txns timestamptz[].
-- Up to 1000 partitions, then one row with a NULL partition_id, which has hints when nothing was
-- found: keep them for later looks.
--
-- No cutoff at all, or a queue_id that is not filed_under: pass the partition to
-- floors_refresh.sql. Locks: none. Transaction: one read-only statement.
SELECT d.clock, d.partition_id, d.queue_id,
       d.all_cutoff, d.completed_cutoff, d.txns_cutoff, d.max_wait_cutoff,
       d.filed_under, d.hint_look, d.hint_queues, d.hint_policies, d.hint_segments, d.hint_txns
FROM @log@.retention_floors_due_v1($1::pg_catalog.timestamptz, $2::pg_catalog.int4,
    $3::pg_catalog.uuid, $4::pg_catalog.uuid[], $5::pg_catalog.int8, $6::pg_catalog.uuid[],
    $7::pg_catalog.int8[], $8::pg_catalog.timestamptz[], $9::pg_catalog.timestamptz[]) AS d
