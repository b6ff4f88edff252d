-- What the server is and what is installed; one row, read from the catalogue alone, so that a missing
-- schema or grant is an answer and not an error.
--
-- Columns: clock timestamptz; read_only bool; has_log_tables bool; has_event_tables bool;
-- log_versioned, event_versioned bool (the part's version record exists); then one bool a function
-- or table, in the order of enum fact in lib/facts.h.
-- Locks: none. Transaction: one read-only statement.
WITH installed AS MATERIALIZED (
    SELECT n.nspname, p.proname
    FROM pg_catalog.pg_namespace AS n
    JOIN pg_catalog.pg_proc AS p ON p.pronamespace OPERATOR(pg_catalog.=) n.oid
    WHERE n.nspname OPERATOR(pg_catalog.=) @log_literal@::pg_catalog.name
       OR n.nspname OPERATOR(pg_catalog.=) @event_literal@::pg_catalog.name
), tables AS MATERIALIZED (
    SELECT n.nspname, c.relname
    FROM pg_catalog.pg_namespace AS n
    JOIN pg_catalog.pg_class AS c ON c.relnamespace OPERATOR(pg_catalog.=) n.oid
    WHERE (n.nspname OPERATOR(pg_catalog.=) @log_literal@::pg_catalog.name
           OR n.nspname OPERATOR(pg_catalog.=) @event_literal@::pg_catalog.name)
      AND c.relkind OPERATOR(pg_catalog.=) ANY ('{r,p,f,v}'::pg_catalog."char"[])
)
SELECT
    pg_catalog.now(),
    pg_catalog.pg_is_in_recovery()
        OR pg_catalog.current_setting('transaction_read_only')::pg_catalog.bool,
    EXISTS (SELECT FROM tables AS t WHERE t.nspname OPERATOR(pg_catalog.=) @log_literal@::pg_catalog.name
        AND t.relname OPERATOR(pg_catalog.=) 'log_partitions'::pg_catalog.name),
    EXISTS (SELECT FROM installed AS i WHERE i.nspname OPERATOR(pg_catalog.=) @event_literal@::pg_catalog.name
        AND i.proname OPERATOR(pg_catalog.=) 'event_prune_step_v1'::pg_catalog.name),
    EXISTS (SELECT FROM tables AS t WHERE t.nspname OPERATOR(pg_catalog.=) @log_literal@::pg_catalog.name
        AND t.relname OPERATOR(pg_catalog.=) 'retention_schema'::pg_catalog.name),
    EXISTS (SELECT FROM tables AS t WHERE t.nspname OPERATOR(pg_catalog.=) @event_literal@::pg_catalog.name
        AND t.relname OPERATOR(pg_catalog.=) 'retention_schema'::pg_catalog.name),
    has.log_retention_step_v1, has.log_txns_purge_step_v1, has.log_evict_max_wait_step_v1,
    has.log_partition_cleanup_step_v1,
    has.log_retention_step_v2, has.log_txns_purge_step_v2, has.log_evict_max_wait_step_v2,
    has.log_partition_cleanup_step_v2,
    has.retention_floors_due_v1,
    EXISTS (SELECT FROM installed AS i WHERE i.nspname OPERATOR(pg_catalog.=) @lease_literal@::pg_catalog.name
        AND i.proname OPERATOR(pg_catalog.=) 'retention_lease_claim_v1'::pg_catalog.name)
FROM (
    SELECT
        pg_catalog.bool_or(i.proname OPERATOR(pg_catalog.=) 'log_retention_step_v1'::pg_catalog.name) AS log_retention_step_v1,
        pg_catalog.bool_or(i.proname OPERATOR(pg_catalog.=) 'log_txns_purge_step_v1'::pg_catalog.name) AS log_txns_purge_step_v1,
        pg_catalog.bool_or(i.proname OPERATOR(pg_catalog.=) 'log_evict_max_wait_step_v1'::pg_catalog.name) AS log_evict_max_wait_step_v1,
        pg_catalog.bool_or(i.proname OPERATOR(pg_catalog.=) 'log_partition_cleanup_step_v1'::pg_catalog.name) AS log_partition_cleanup_step_v1,
        pg_catalog.bool_or(i.proname OPERATOR(pg_catalog.=) 'log_retention_step_v2'::pg_catalog.name) AS log_retention_step_v2,
        pg_catalog.bool_or(i.proname OPERATOR(pg_catalog.=) 'log_txns_purge_step_v2'::pg_catalog.name) AS log_txns_purge_step_v2,
        pg_catalog.bool_or(i.proname OPERATOR(pg_catalog.=) 'log_evict_max_wait_step_v2'::pg_catalog.name) AS log_evict_max_wait_step_v2,
        pg_catalog.bool_or(i.proname OPERATOR(pg_catalog.=) 'log_partition_cleanup_step_v2'::pg_catalog.name) AS log_partition_cleanup_step_v2,
        pg_catalog.bool_or(i.proname OPERATOR(pg_catalog.=) 'retention_floors_due_v1'::pg_catalog.name) AS retention_floors_due_v1
    FROM installed AS i
    WHERE i.nspname OPERATOR(pg_catalog.=) @log_literal@::pg_catalog.name
) AS has
