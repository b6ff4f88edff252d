-- signature: retention_late_wait_v2(timestamptz)
--
-- How long a second step may wait for its next lock, in milliseconds, one at least: the least of
-- qretention.late_lock_ms (a setting of ours, 200 where it is missing or no number), what is left of
-- half a deadlock_timeout, and the session's own lock_timeout where there is one.
--
-- p_since  when the step began to delete
--
-- Half, because a waiter behind the step looks for a deadlock after one deadlock_timeout: by then
-- the step has let go. One at least, since a lock_timeout of 0 would mean for ever. Locks: none.
--
-- One expression without a search_path of its own, so that the planner puts it in its callers'
-- place: the steps, which have set theirs.
CREATE OR REPLACE FUNCTION @log@.retention_late_wait_v2(p_since timestamptz)
RETURNS int
LANGUAGE sql
VOLATILE
AS $qretention$
    SELECT GREATEST(1, LEAST(
        CASE WHEN pg_catalog.current_setting('qretention.late_lock_ms', true)
                      OPERATOR(pg_catalog.~) '^[0-9]{1,9}$'
             THEN pg_catalog.current_setting('qretention.late_lock_ms')::pg_catalog.int4
             ELSE 200 END,
        (pg_catalog.date_part('epoch',
            pg_catalog.current_setting('deadlock_timeout')::pg_catalog.interval
                OPERATOR(pg_catalog./) 2
                OPERATOR(pg_catalog.-) (pg_catalog.clock_timestamp() OPERATOR(pg_catalog.-) p_since))
            OPERATOR(pg_catalog.*) 1000)::pg_catalog.int4,
        NULLIF((pg_catalog.date_part('epoch',
            pg_catalog.current_setting('lock_timeout')::pg_catalog.interval)
            OPERATOR(pg_catalog.*) 1000)::pg_catalog.int4, 0)))
$qretention$
