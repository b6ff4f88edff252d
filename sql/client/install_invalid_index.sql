-- What removes an index that an interrupted build left behind, invalid: it serves nobody, and IF NOT EXISTS
-- would believe in it. $1 name text. Column: a DROP statement, text, or no row. Locks: none.
SELECT pg_catalog.format('DROP INDEX CONCURRENTLY IF EXISTS %I.%I', n.nspname, c.relname)
FROM pg_catalog.pg_index AS i
JOIN pg_catalog.pg_class AS c ON c.oid OPERATOR(pg_catalog.=) i.indexrelid
JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
WHERE NOT i.indisvalid AND c.relname OPERATOR(pg_catalog.=) $1::pg_catalog.text::pg_catalog.name
LIMIT 1
