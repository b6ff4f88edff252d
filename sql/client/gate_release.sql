-- Releases the session gate. $1 key int8. Column: released bool; false: this session did not hold it.
SELECT pg_catalog.pg_advisory_unlock($1::pg_catalog.int8)
