-- One prune step over one arm.
-- $1 arm text, $2 clock timestamptz, $3 default window seconds int8, $4 max_rows int4, $5 after text,
-- $6 max_events int4
-- Columns: events, deliveries, skipped, oversize, poison (with what is unknown) int8, last text, done bool,
-- elapsed_us int8, failed int8, failure text (SQLSTATE, message), waits int8.
-- Locks and transaction: those of the function.
SELECT
    (step.answer OPERATOR(pg_catalog.->>) 'events')::pg_catalog.int8,
    (step.answer OPERATOR(pg_catalog.->>) 'deliveries')::pg_catalog.int8,
    (step.answer OPERATOR(pg_catalog.->>) 'skipped')::pg_catalog.int8,
    (step.answer OPERATOR(pg_catalog.->>) 'oversize')::pg_catalog.int8,
    (step.answer OPERATOR(pg_catalog.->>) 'poison')::pg_catalog.int8 OPERATOR(pg_catalog.+)
        COALESCE((step.answer OPERATOR(pg_catalog.->>) 'unknown')::pg_catalog.int8, 0),
    step.answer OPERATOR(pg_catalog.->>) 'last',
    COALESCE((step.answer OPERATOR(pg_catalog.->>) 'done')::pg_catalog.bool, false),
    (pg_catalog.date_part('epoch', pg_catalog.clock_timestamp() OPERATOR(pg_catalog.-)
        pg_catalog.statement_timestamp()) OPERATOR(pg_catalog.*) 1000000)::pg_catalog.int8,
    (step.answer OPERATOR(pg_catalog.->>) 'failed')::pg_catalog.int8,
    step.answer OPERATOR(pg_catalog.->>) 'failure',
    (step.answer OPERATOR(pg_catalog.->>) 'waits')::pg_catalog.int8
FROM @event@.event_prune_limited_v1($1::pg_catalog.text, $2::pg_catalog.timestamptz,
    $3::pg_catalog.int8, $4::pg_catalog.int4, $5::pg_catalog.text,
    $6::pg_catalog.int4) AS step(answer)
