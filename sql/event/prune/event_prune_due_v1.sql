-- signature: event_prune_due_v1(text, timestamptz, timestamptz, timestamptz, bigint, text)
--
-- Whether an event is due by its own row, whatever is owed on it; NULL: it is not. A date or a
-- window that cannot be reckoned with never is.
--
-- p_arm, p_now, p_cutoff  as event_prune_batch_v1; the others: the row's columns
--
-- Locks: none. Without a path of its own, as event_prune_terminal_v1.
CREATE OR REPLACE FUNCTION @event@.event_prune_due_v1(
    p_arm text,
    p_now timestamptz,
    p_cutoff timestamptz,
    p_recorded_at timestamptz,
    p_retention_seconds bigint,
    p_delete_when text
)
RETURNS boolean
LANGUAGE sql
STABLE
AS $qretention$
    SELECT CASE
        WHEN p_recorded_at OPERATOR(pg_catalog.>=)
                '0001-01-01 00:00:00+00'::pg_catalog.timestamptz
            AND p_recorded_at OPERATOR(pg_catalog.<)
                '9999-01-01 00:00:00+00'::pg_catalog.timestamptz
        THEN CASE
            WHEN p_arm OPERATOR(pg_catalog.=) ANY ('{succeeded,settled}'::pg_catalog.text[])
                THEN p_delete_when OPERATOR(pg_catalog.=) p_arm
            WHEN p_arm OPERATOR(pg_catalog.=) 'own_window'
                THEN p_retention_seconds OPERATOR(pg_catalog.>) 0
                    AND p_recorded_at OPERATOR(pg_catalog.+)
                        pg_catalog.make_interval(secs => p_retention_seconds)
                        OPERATOR(pg_catalog.<) p_now
            WHEN p_arm OPERATOR(pg_catalog.=) 'default_window'
                THEN p_retention_seconds IS NULL
                    AND p_recorded_at OPERATOR(pg_catalog.<) p_cutoff
        END
    END
$qretention$
