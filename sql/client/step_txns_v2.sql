-- One sidecar purge step that takes its lock last, ours, with exact counts.
--
-- $1 partition uuid
-- $2 cutoff timestamptz   NULL: nothing goes
-- $3 max_rows int4
-- $4 guard bool           true: refuse a cutoff later than the server's now()
--
-- Columns: deleted int8, messages int8, watermark int8, done bool, elapsed_us int8, refused bool.
-- `refused` is true, watermark -1, and nothing was done, when the guard is on and a cutoff lies in
-- the future.
--
-- Locks, transaction and errors (QR001, QR004, QR006): those of the function.
@shared:step_answer_v2@
FROM @log@.log_txns_purge_core_v2($1::pg_catalog.uuid, $2::pg_catalog.timestamptz,
    $3::pg_catalog.int4, $4::pg_catalog.bool) AS s
