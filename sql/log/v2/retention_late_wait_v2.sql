-- signature: retention_late_wait_v2()
--
-- How long a second step may wait for a lock, in milliseconds.
--
-- late_ms   the most it may wait for one: the least of qretention.late_lock_ms (a setting of ours,
--           200 where it is missing or no number), half of deadlock_timeout, and the session's own
--           lock_timeout where that is shorter
-- total_ms  from the step's first delete on it may be met in a deadlock: half of deadlock_timeout,
--           of which the time since then is to be taken
--
-- Half, because a waiter behind the step looks for a deadlock after one deadlock_timeout: by then
-- the step has let go. Locks: none.
CREATE OR REPLACE FUNCTION @log@.retention_late_wait_v2(OUT late_ms int, OUT total_ms int)
LANGUAGE plpgsql
STABLE
SET search_path = pg_catalog, pg_temp
AS $qretention$
DECLARE
    v_own text := current_setting('qretention.late_lock_ms', true);
    v_session int := date_part('epoch', current_setting('lock_timeout')::interval) * 1000;
BEGIN
    total_ms := date_part('epoch', current_setting('deadlock_timeout')::interval) * 500;
    late_ms := CASE WHEN v_own ~ '^[0-9]{1,9}$' THEN v_own::int ELSE 200 END;
    late_ms := LEAST(late_ms, total_ms, CASE WHEN v_session > 0 THEN v_session END);
END
$qretention$
