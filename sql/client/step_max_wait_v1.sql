-- One max-wait eviction step through the contract's function, ours or a host's.
--
-- $1 partition uuid
-- $2 cutoff timestamptz   NULL: nothing goes
-- $3 max_rows int4
-- $4 guard bool           true: refuse a cutoff later than the server's now()
--
-- Columns: deleted int8, messages int8, watermark int8 (-1: unknown), done bool, elapsed_us int8,
-- refused bool.
-- `messages` is what the watermark moved, read beside the call, so approximate where others step
-- too; the contract gives no better.
-- `refused` is true, and nothing was called, when the guard is on and a cutoff lies in the future.
--
-- Locks and transaction: those of the function.
WITH guard AS MATERIALIZED (
    SELECT COALESCE($4::pg_catalog.bool
               AND $2::pg_catalog.timestamptz
                   OPERATOR(pg_catalog.>) pg_catalog.now(), false) AS refused,
           (SELECT p.log_start FROM @log@.log_partitions p
            WHERE p.id OPERATOR(pg_catalog.=) $1::pg_catalog.uuid) AS before
), call AS MATERIALIZED (
    SELECT guard.refused,
           guard.before,
           CASE WHEN NOT guard.refused THEN
               @log@.log_evict_max_wait_step_v1($1::pg_catalog.uuid, $2::pg_catalog.timestamptz,
                   $3::pg_catalog.int4)
           END AS answer
    FROM guard
)
@shared:step_answer_v1@
