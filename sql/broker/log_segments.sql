-- Segments: one row per pushed batch, whose messages lie in the blob.
-- The primary key is the pop path and the only index, on purpose.
-- Locks: none where the table exists; otherwise those of creating it. One transaction.
DO $qretention$
BEGIN
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
    IF to_regclass(format('%I.%I', @log_literal@, 'log_segments')) IS NOT NULL THEN
        RETURN;
    END IF;
    CREATE TABLE @log@.log_segments (
        partition_id uuid NOT NULL REFERENCES @log@.log_partitions (id) ON DELETE CASCADE,
        base_offset bigint NOT NULL,
        end_offset bigint NOT NULL,
        created_at timestamptz NOT NULL,
        blob bytea,
        PRIMARY KEY (partition_id, base_offset)
    );
    -- The blobs arrive compressed. A column's STORAGE clause inside CREATE TABLE needs PostgreSQL
    -- 16.
    ALTER TABLE @log@.log_segments ALTER COLUMN blob SET STORAGE EXTERNAL;
END
$qretention$
