-- The columns of a step that was called through the contract's function, from `call`: the call's
-- answer, whether it was refused, and the watermark before, that of the log or of the sidecar.
SELECT
    COALESCE((call.answer OPERATOR(pg_catalog.->>) 'deleted')::pg_catalog.int8, 0) AS deleted,
    COALESCE(GREATEST(call.watermark OPERATOR(pg_catalog.-) call.before, 0), 0) AS messages,
    COALESCE(call.watermark, -1) AS watermark,
    COALESCE((call.answer OPERATOR(pg_catalog.->>) 'done')::pg_catalog.bool, false) AS done,
    (pg_catalog.date_part('epoch', pg_catalog.clock_timestamp() OPERATOR(pg_catalog.-)
        pg_catalog.statement_timestamp()) OPERATOR(pg_catalog.*) 1000000)::pg_catalog.int8
        AS elapsed_us,
    call.refused
FROM (
    SELECT c.refused, c.before, c.answer,
           COALESCE(c.answer OPERATOR(pg_catalog.->>) 'new_log_start',
               c.answer OPERATOR(pg_catalog.->>) 'new_txns_start')::pg_catalog.int8 AS watermark
    FROM call AS c
) AS call
