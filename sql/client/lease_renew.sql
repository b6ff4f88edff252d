-- Puts the expiry off. $1 fence int8, $2 lease ms int8. Column: whether the claim is still in force, bool.
SELECT @lease@.retention_lease_renew_v1($1::pg_catalog.int8, $2::pg_catalog.int8)
