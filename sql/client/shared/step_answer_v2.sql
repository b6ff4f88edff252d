-- The columns of a step of ours, from `s`, its answer.
SELECT
    s.deleted,
    s.messages,
    s.watermark,
    s.done,
    (pg_catalog.date_part('epoch', pg_catalog.clock_timestamp() OPERATOR(pg_catalog.-)
        pg_catalog.statement_timestamp()) OPERATOR(pg_catalog.*) 1000000)::pg_catalog.int8
        AS elapsed_us,
    s.refused
