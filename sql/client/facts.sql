-- What the server is and what is installed; one row, read from the catalogue alone, so that a missing
-- schema or grant is an answer and not an error.
--
-- $1 look bool   whether to look for what keeps deleted rows in the tables, too
--
-- Columns: clock timestamptz; read_only bool; has_log_tables bool; has_event_tables bool;
-- log_versioned, event_versioned bool (the part's version record exists); then one bool a function
-- or table, in the order of enum fact in lib/facts.h. Then, without a look NULL: dead_rows int8, those
-- of the tables that are retained, by the server's statistics; held_us int8, since when the oldest
-- snapshot or prepared transaction has kept VACUUM from removing them, and holder int4, its process
-- (NULL: prepared). Sessions of other roles are seen by members of pg_read_all_stats alone.
-- Locks: none. Transaction: one read-only statement.
--
-- By name first, which both catalogues have an index on; a schema of its own has none.
WITH installed AS MATERIALIZED (
    SELECT n.nspname, p.proname AS name
    FROM pg_catalog.pg_proc AS p
    JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) p.pronamespace
    WHERE p.proname OPERATOR(pg_catalog.=) ANY ('{
            log_retention_step_v1, log_txns_purge_step_v1, log_evict_max_wait_step_v1,
            log_partition_cleanup_step_v1, log_retention_step_v2, log_txns_purge_step_v2,
            log_evict_max_wait_step_v2, log_partition_cleanup_step_v2,
            retention_floors_due_v1, event_prune_step_v1, retention_lease_claim_v1}'::pg_catalog.name[])
    UNION ALL
    SELECT n.nspname, c.relname
    FROM pg_catalog.pg_class AS c
    JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
    WHERE c.relname OPERATOR(pg_catalog.=) ANY ('{log_partitions, retention_schema}'::pg_catalog.name[])
      AND c.relkind OPERATOR(pg_catalog.=) ANY ('{r,p,f,v}'::pg_catalog."char"[])
), log AS MATERIALIZED (
    SELECT pg_catalog.array_agg(i.name) AS names
    FROM installed AS i
    WHERE i.nspname OPERATOR(pg_catalog.=) @log_literal@::pg_catalog.name
), event AS MATERIALIZED (
    SELECT pg_catalog.array_agg(i.name) AS names
    FROM installed AS i
    WHERE i.nspname OPERATOR(pg_catalog.=) @event_literal@::pg_catalog.name
), lease AS MATERIALIZED (
    SELECT pg_catalog.array_agg(i.name) AS names
    FROM installed AS i
    WHERE i.nspname OPERATOR(pg_catalog.=) @lease_literal@::pg_catalog.name
), kept AS MATERIALIZED (
    SELECT held.pid, held.since
    FROM (
        SELECT a.pid, a.xact_start
        FROM pg_catalog.pg_stat_activity AS a
        WHERE $1::pg_catalog.bool AND a.backend_xmin IS NOT NULL
          AND a.backend_type OPERATOR(pg_catalog.=) 'client backend'
          AND a.pid OPERATOR(pg_catalog.<>) pg_catalog.pg_backend_pid()
        UNION ALL
        SELECT NULL, x.prepared
        FROM pg_catalog.pg_prepared_xacts AS x
        WHERE $1::pg_catalog.bool
    ) AS held(pid, since)
    WHERE held.since IS NOT NULL
    ORDER BY held.since
    LIMIT 1
)
SELECT
    pg_catalog.now(),
    pg_catalog.pg_is_in_recovery()
        OR pg_catalog.current_setting('transaction_read_only')::pg_catalog.bool,
    'log_partitions'::pg_catalog.name OPERATOR(pg_catalog.=) ANY (log.names),
    'event_prune_step_v1'::pg_catalog.name OPERATOR(pg_catalog.=) ANY (event.names),
    'retention_schema'::pg_catalog.name OPERATOR(pg_catalog.=) ANY (log.names),
    'retention_schema'::pg_catalog.name OPERATOR(pg_catalog.=) ANY (event.names),
    'log_retention_step_v1'::pg_catalog.name OPERATOR(pg_catalog.=) ANY (log.names),
    'log_txns_purge_step_v1'::pg_catalog.name OPERATOR(pg_catalog.=) ANY (log.names),
    'log_evict_max_wait_step_v1'::pg_catalog.name OPERATOR(pg_catalog.=) ANY (log.names),
    'log_partition_cleanup_step_v1'::pg_catalog.name OPERATOR(pg_catalog.=) ANY (log.names),
    'log_retention_step_v2'::pg_catalog.name OPERATOR(pg_catalog.=) ANY (log.names),
    'log_txns_purge_step_v2'::pg_catalog.name OPERATOR(pg_catalog.=) ANY (log.names),
    'log_evict_max_wait_step_v2'::pg_catalog.name OPERATOR(pg_catalog.=) ANY (log.names),
    'log_partition_cleanup_step_v2'::pg_catalog.name OPERATOR(pg_catalog.=) ANY (log.names),
    'retention_floors_due_v1'::pg_catalog.name OPERATOR(pg_catalog.=) ANY (log.names),
    'retention_lease_claim_v1'::pg_catalog.name OPERATOR(pg_catalog.=) ANY (lease.names),
    CASE WHEN $1::pg_catalog.bool THEN (
        SELECT pg_catalog.sum(pg_catalog.pg_stat_get_dead_tuples(c.oid))::pg_catalog.int8
        FROM pg_catalog.pg_class AS c
        WHERE c.oid OPERATOR(pg_catalog.=) ANY (ARRAY[
            pg_catalog.to_regclass(pg_catalog.format('%I.log_segments', @log_literal@)),
            pg_catalog.to_regclass(pg_catalog.format('%I.log_txns', @log_literal@)),
            pg_catalog.to_regclass(@event_table_literal@),
            pg_catalog.to_regclass(@delivery_table_literal@)]::pg_catalog.oid[])
    ) END,
    (pg_catalog.date_part('epoch', pg_catalog.now() OPERATOR(pg_catalog.-) kept.since)
        OPERATOR(pg_catalog.*) 1000000)::pg_catalog.int8,
    kept.pid
FROM log, event, lease
LEFT JOIN kept ON true
