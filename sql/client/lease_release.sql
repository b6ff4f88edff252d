-- Gives the lease back. $1 fence int8, $2 hand over bool, $3 clean bool. Column: whether the claim was still in force, bool.
SELECT @lease@.retention_lease_release_v1($1::pg_catalog.int8, $2::pg_catalog.bool, $3::pg_catalog.bool)
