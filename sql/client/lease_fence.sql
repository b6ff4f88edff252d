-- Goes before a step, in its transaction. $1 fence int8, $2 key int8. Refuses with QR002.
SELECT @lease@.retention_fence_v1($1::pg_catalog.int8, $2::pg_catalog.int8)
