-- The hash sidecar: one row per segment, 16 bytes per message, same stamp as the segment.
-- No foreign key: a cascade would make every clean-up of a partition wait for it. Whoever deletes a
-- partition deletes its sidecar rows explicitly.
-- Locks: none where the table exists; otherwise those of creating it. One transaction.
DO $qretention$
BEGIN
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
    IF to_regclass(format('%I.%I', @log_literal@, 'log_txns')) IS NOT NULL THEN
        RETURN;
    END IF;
    CREATE TABLE @log@.log_txns (
        partition_id uuid NOT NULL,
        base_offset bigint NOT NULL,
        end_offset bigint NOT NULL,
        created_at timestamptz NOT NULL,
        hashes bytea NOT NULL,
        PRIMARY KEY (partition_id, base_offset)
    );
END
$qretention$
