-- signature: cleanup_worker_metrics_v1(int)
--
-- Deletes metrics and audit rows older than p_days days of 24 hours, from four tables.
--
-- p_days  how many days to keep; below 1 counts as 1; NULL: nothing is deleted; more days than a
--         timestamp can hold: nothing is that old
--
-- Returns {"deletedMetrics": worker_metrics, "deletedLagMetrics": queue_lag_metrics,
-- "deletedParkedReplica": queue_parked_replica, "deletedRetentionHistory": retention_history}.
--
-- Unbounded by its contract, one transaction: the library does not call it, but purges each
-- table in bounded batches. Locks: the rows it deletes. Runs as its caller.
CREATE OR REPLACE FUNCTION @log@.cleanup_worker_metrics_v1(p_days int)
RETURNS jsonb
LANGUAGE plpgsql
VOLATILE
SET search_path = pg_catalog, pg_temp
AS $qretention$
DECLARE
    -- Past some 2.4 million days now() minus the window is no timestamp any more.
    v_cutoff constant timestamptz := CASE
        WHEN p_days > 2000000 THEN '-infinity'::timestamptz
        ELSE now() - make_interval(secs => GREATEST(p_days, 1) * 86400.0::double precision)
    END;
    v_worker bigint := 0;
    v_lag bigint := 0;
    v_parked bigint := 0;
    v_history bigint := 0;
BEGIN
    IF p_days IS NOT NULL THEN
        DELETE FROM @log@.worker_metrics AS m WHERE m.bucket_time < v_cutoff;
        GET DIAGNOSTICS v_worker = ROW_COUNT;
        DELETE FROM @log@.queue_lag_metrics AS m WHERE m.bucket_time < v_cutoff;
        GET DIAGNOSTICS v_lag = ROW_COUNT;
        DELETE FROM @log@.queue_parked_replica AS m WHERE m.bucket_time < v_cutoff;
        GET DIAGNOSTICS v_parked = ROW_COUNT;
        DELETE FROM @log@.retention_history AS h WHERE h.executed_at < v_cutoff;
        GET DIAGNOSTICS v_history = ROW_COUNT;
    END IF;
    RETURN jsonb_build_object(
        'deletedMetrics', v_worker,
        'deletedLagMetrics', v_lag,
        'deletedParkedReplica', v_parked,
        'deletedRetentionHistory', v_history
    );
END
$qretention$
