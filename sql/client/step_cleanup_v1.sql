-- One stateless clean-up step over empty partitions, through the contract's function.
--
-- $1 cutoff timestamptz   NULL: nothing goes
-- $2 max_rows int4
--
-- Columns: deleted int8, done bool, elapsed_us int8, then those of step_cleanup_v2.sql, which the
-- contract does not tell: last uuid NULL, spared int8 0, orphans int8 0, orphan uuid NULL,
-- failed int8 0, failure text NULL.
-- Locks and transaction: those of the function.
SELECT
    COALESCE((step.answer OPERATOR(pg_catalog.->>) 'deleted')::pg_catalog.int8, 0),
    COALESCE((step.answer OPERATOR(pg_catalog.->>) 'done')::pg_catalog.bool, false),
    (pg_catalog.date_part('epoch', pg_catalog.clock_timestamp() OPERATOR(pg_catalog.-)
        pg_catalog.statement_timestamp()) OPERATOR(pg_catalog.*) 1000000)::pg_catalog.int8,
    NULL::pg_catalog.uuid,
    0::pg_catalog.int8,
    0::pg_catalog.int8,
    NULL::pg_catalog.uuid,
    0::pg_catalog.int8,
    NULL::pg_catalog.text
FROM @log@.log_partition_cleanup_step_v1($1::pg_catalog.timestamptz, $2::pg_catalog.int4) AS step(answer)
