-- Waits out the steps of an earlier claim. $1 key int8. Column: bool.
SELECT @lease@.retention_lease_barrier_v1($1::pg_catalog.int8)
