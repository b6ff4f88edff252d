-- configure(queue, retention, completed, max_wait, dedup): sets a queue's whole policy, in seconds.
-- A window of 0 is off; with both retention windows off, retention is off. Makes the queue if need be.
-- Locks: the queue row. One transaction.
CREATE OR REPLACE FUNCTION @broker@.configure(p_queue text, p_retention integer,
    p_completed integer, p_max_wait integer, p_dedup integer)
RETURNS void
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $broker$
    INSERT INTO @log@.queues (name, retention_enabled, retention_seconds,
        completed_retention_seconds, max_wait_time_seconds, dedup_window_seconds)
    VALUES (p_queue, p_retention > 0 OR p_completed > 0, p_retention, p_completed, p_max_wait,
        p_dedup)
    ON CONFLICT (tenant_id, name) DO UPDATE SET
        retention_enabled = excluded.retention_enabled,
        retention_seconds = excluded.retention_seconds,
        completed_retention_seconds = excluded.completed_retention_seconds,
        max_wait_time_seconds = excluded.max_wait_time_seconds,
        dedup_window_seconds = excluded.dedup_window_seconds
$broker$
