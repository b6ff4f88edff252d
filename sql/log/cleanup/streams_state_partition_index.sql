-- The clean-up asks whether a partition has streams state; the primary key begins with the query,
-- so without this index each question would read the table. Locks: SHARE UPDATE EXCLUSIVE, waits
-- for older transactions, no transaction of its own around it.
CREATE INDEX CONCURRENTLY IF NOT EXISTS retention_state_partition_id_idx
    ON @streams@.state (partition_id)
