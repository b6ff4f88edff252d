-- signature: retention_late_wait_v2()
--
-- How long a second step may wait for one lock, in milliseconds: the least of
-- qretention.late_lock_ms (a setting of ours, 200 where it is missing or no number), half of
-- deadlock_timeout, and the session's own lock_timeout where there is one.
--
-- Half, because a waiter behind the step looks for a deadlock after one deadlock_timeout: by then
-- the step has let go. Locks: none.
--
-- One expression without a search_path of its own, so that the planner puts it in its callers'
-- place: the steps, which have set theirs.
CREATE OR REPLACE FUNCTION @log@.retention_late_wait_v2()
RETURNS int
LANGUAGE sql
STABLE
AS $qretention$
    SELECT LEAST(
        CASE WHEN pg_catalog.current_setting('qretention.late_lock_ms', true)
                      OPERATOR(pg_catalog.~) '^[0-9]{1,9}$'
             THEN pg_catalog.current_setting('qretention.late_lock_ms')::pg_catalog.int4
             ELSE 200 END,
        (pg_catalog.date_part('epoch',
            pg_catalog.current_setting('deadlock_timeout')::pg_catalog.interval)
            OPERATOR(pg_catalog.*) 500)::pg_catalog.int4,
        NULLIF((pg_catalog.date_part('epoch',
            pg_catalog.current_setting('lock_timeout')::pg_catalog.interval)
            OPERATOR(pg_catalog.*) 1000)::pg_catalog.int4, 0))
$qretention$
