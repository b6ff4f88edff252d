-- Partitions of a queue: the allocator (last_offset) and the two watermarks that retention moves.
-- The row is the hottest of the broker (every push updates it), so: room for HOT updates, a vacuum
-- that comes often and never truncates (truncation takes ACCESS EXCLUSIVE), and no further index.
-- Locks: none where the table exists; otherwise those of creating it. One transaction.
DO $qretention$
BEGIN
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
    IF to_regclass(format('%I.%I', @log_literal@, 'log_partitions')) IS NOT NULL THEN
        RETURN;
    END IF;
    CREATE TABLE @log@.log_partitions (
        id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
        queue_id uuid NOT NULL REFERENCES @log@.queues (id) ON DELETE CASCADE,
        name text NOT NULL DEFAULT 'Default',
        last_offset bigint NOT NULL DEFAULT -1,
        log_start bigint NOT NULL DEFAULT 0,
        txns_start bigint NOT NULL DEFAULT 0,
        last_write_at timestamptz DEFAULT now(),
        created_at timestamptz DEFAULT now(),
        UNIQUE (queue_id, name)
    )
    WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500,
        autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);
    CREATE INDEX log_partitions_queue_id_last_write_at_idx
        ON @log@.log_partitions (queue_id, last_write_at);
END
$qretention$
