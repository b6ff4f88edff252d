-- One bounded batch of the metrics purge, on one table. Sent by the library as it stands, so that it runs on
-- databases whose functions are somebody else's too.
--
-- The tokens table and column: quoted, the table qualified by its schema.
--
-- $1        timestamptz: rows older than this go; NULL: none
-- $2        int4: most rows to delete; NULL and anything below 1 count as 1
--
-- One row: deleted int8, elapsed_us int8. The oldest go first. The array of row addresses is a bound under every
-- plan, which IN (SELECT .. LIMIT ..) is not. The outer test is for a row that changed meanwhile, and for partitioned
-- tables, where one address can occur in several partitions: nothing fresh ever goes.
-- Locks: the rows it deletes. One transaction.
WITH gone AS (
    DELETE FROM @table@ AS old
    WHERE old.ctid OPERATOR(pg_catalog.=) ANY (
            ARRAY(
                SELECT due.ctid
                FROM @table@ AS due
                WHERE due.@column@ OPERATOR(pg_catalog.<) $1::pg_catalog.timestamptz
                ORDER BY due.@column@
                LIMIT GREATEST(COALESCE($2::pg_catalog.int4, 1), 1)
            )
        )
      AND old.@column@ OPERATOR(pg_catalog.<) $1::pg_catalog.timestamptz
    RETURNING 1
)
SELECT pg_catalog.count(*) AS deleted,
    (pg_catalog.date_part('epoch', pg_catalog.clock_timestamp() OPERATOR(pg_catalog.-)
        pg_catalog.statement_timestamp()) OPERATOR(pg_catalog.*) 1000000)::pg_catalog.int8 AS elapsed_us
FROM gone
