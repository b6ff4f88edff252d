-- signature: event_prune_terminal_v1(text)
--
-- The statuses of a delivery by which nothing is owed, by an arm's measure. Anything else is owed,
-- NULL too.
--
-- p_arm  'succeeded', 'settled', 'own_window', 'default_window'
--
-- Locks: none. Without a path of its own, so that it is an expression where it is used and no call;
-- hence every name in it is qualified.
CREATE OR REPLACE FUNCTION @event@.event_prune_terminal_v1(p_arm text)
RETURNS text[]
LANGUAGE sql
IMMUTABLE
AS $qretention$
    SELECT CASE WHEN p_arm OPERATOR(pg_catalog.=) 'succeeded'
        THEN '{succeeded,cancelled}'::pg_catalog.text[]
        ELSE '{succeeded,cancelled,dead,orphaned}'::pg_catalog.text[] END
$qretention$
