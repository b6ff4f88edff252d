-- Takes the session gate if it is free. $1 key int8. Column: taken bool. Never waits.
SELECT pg_catalog.pg_try_advisory_lock($1::pg_catalog.int8)
