-- The installed version of one part, from its record; no row or NULL: not installed.
-- $1 part text; token @schema@: where the record is. Locks: none.
SELECT pg_catalog.max(s.version) FROM @schema@.retention_schema AS s
WHERE s.part OPERATOR(pg_catalog.=) $1::pg_catalog.text
