-- Claims the lease. $1 holder text, $2 lease ms int8, $3 interval ms int8, $4 key int8.
-- Columns: state text, fence int8, barrier bool, wait_ms int8.
SELECT c.state, c.fence, c.barrier, c.wait_ms
FROM @lease@.retention_lease_claim_v1($1::pg_catalog.text, $2::pg_catalog.int8, $3::pg_catalog.int8, $4::pg_catalog.int8) AS c
