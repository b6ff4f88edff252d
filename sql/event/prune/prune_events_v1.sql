-- signature: prune_events_v1(bigint, int, bigint)
--
-- The whole prune for who has SQL alone: every arm, step after step, each committed by itself.
--
--   CALL outbox.prune_events_v1(90 * 86400, 5000, NULL);
--
-- p_default_window_seconds  the default window; replaces no event's own
-- p_max_rows                most rows a transaction deletes
-- p_limit                   most events to delete; NULL or 0: no limit
--
-- Ends with a notice of what went. May be stopped at any time: what is committed stays deleted. A
-- step that lost a lock to another prune is tried again twice, then its arm is left to the next
-- run, with a warning. Not inside a transaction block.
--
-- Here is nothing but the loop and its commits: a procedure that commits can pin no search path,
-- and so must not name an operator.
CREATE OR REPLACE PROCEDURE @event@.prune_events_v1(
    p_default_window_seconds bigint,
    p_max_rows int,
    p_limit bigint
)
LANGUAGE plpgsql
AS $qretention$
DECLARE
    v_run pg_catalog.jsonb;
    v_done boolean;
BEGIN
    COMMIT;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    v_run := @event@.prune_events_begin_v1(p_default_window_seconds, p_max_rows, p_limit);
    LOOP
        SELECT n.run, n.done INTO v_run, v_done FROM @event@.prune_events_next_v1(v_run) AS n;
        COMMIT;
        SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
        EXIT WHEN v_done;
    END LOOP;
END
$qretention$
