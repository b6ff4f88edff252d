-- Whether the streams engine's state table exists. $1 schema text. Column: 1 or 0, int8. Locks: none.
SELECT pg_catalog.count(*)
FROM pg_catalog.pg_class AS c
JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
WHERE n.nspname OPERATOR(pg_catalog.=) $1::pg_catalog.text::pg_catalog.name
  AND c.relname OPERATOR(pg_catalog.=) 'state'::pg_catalog.name
  AND c.relkind OPERATOR(pg_catalog.=) ANY ('{r,p}'::pg_catalog."char"[])
