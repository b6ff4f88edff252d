-- What removes an index that an interrupted build left behind, invalid: it serves nobody, and IF NOT EXISTS
-- would believe in it. Only on tables in our schemas and on the host's outbox tables: one of the same name on
-- any other table is not ours. $1 name text, without the suffix of names on a host's tables. Column: a DROP statement, text, or no row. Locks: none.
SELECT pg_catalog.format('DROP INDEX CONCURRENTLY IF EXISTS %I.%I', n.nspname, c.relname)
FROM pg_catalog.pg_index AS i
JOIN pg_catalog.pg_class AS c ON c.oid OPERATOR(pg_catalog.=) i.indexrelid
JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
CROSS JOIN (SELECT $1::pg_catalog.text) AS wanted(name)
WHERE NOT i.indisvalid AND c.relname OPERATOR(pg_catalog.=) ANY (ARRAY[wanted.name,
        wanted.name OPERATOR(pg_catalog.||) @suffix_literal@]::pg_catalog.name[])
    AND (n.nspname OPERATOR(pg_catalog.=) @log_literal@::pg_catalog.name
        OR n.nspname OPERATOR(pg_catalog.=) @streams_literal@::pg_catalog.name
        OR n.nspname OPERATOR(pg_catalog.=) @event_literal@::pg_catalog.name
        OR i.indrelid OPERATOR(pg_catalog.=) pg_catalog.to_regclass(@event_table_literal@)
        OR i.indrelid OPERATOR(pg_catalog.=) pg_catalog.to_regclass(@delivery_table_literal@)
        OR i.indrelid OPERATOR(pg_catalog.=) pg_catalog.to_regclass(@success_table_literal@))
LIMIT 1
