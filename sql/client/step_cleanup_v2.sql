-- One clean-up step over empty partitions that goes on behind a cursor.
--
-- $1 cutoff timestamptz   NULL: nothing goes
-- $2 max_rows int4
-- $3 after uuid           `last` of the step before; NULL: from the start
--
-- Columns: deleted int8, done bool, elapsed_us int8, last uuid, spared int8, orphans int8, orphan uuid,
-- failed int8, failure text (SQLSTATE, message).
-- Locks and transaction: those of the function.
SELECT
    COALESCE((step.answer OPERATOR(pg_catalog.->>) 'deleted')::pg_catalog.int8, 0),
    COALESCE((step.answer OPERATOR(pg_catalog.->>) 'done')::pg_catalog.bool, false),
    (pg_catalog.date_part('epoch', pg_catalog.clock_timestamp() OPERATOR(pg_catalog.-)
        pg_catalog.statement_timestamp()) OPERATOR(pg_catalog.*) 1000000)::pg_catalog.int8,
    (step.answer OPERATOR(pg_catalog.->>) 'last')::pg_catalog.uuid,
    COALESCE((step.answer OPERATOR(pg_catalog.->>) 'spared')::pg_catalog.int8, 0),
    COALESCE((step.answer OPERATOR(pg_catalog.->>) 'orphans')::pg_catalog.int8, 0),
    (step.answer OPERATOR(pg_catalog.->>) 'orphan')::pg_catalog.uuid,
    COALESCE((step.answer OPERATOR(pg_catalog.->>) 'failed')::pg_catalog.int8, 0),
    step.answer OPERATOR(pg_catalog.->>) 'failure'
FROM @log@.log_partition_cleanup_step_v2($1::pg_catalog.timestamptz, $2::pg_catalog.int4,
    $3::pg_catalog.uuid) AS step(answer)
