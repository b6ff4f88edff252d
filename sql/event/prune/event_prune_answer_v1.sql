-- signature: event_prune_answer_v1(text, boolean)
--
-- The answer of a step of the prune that deleted nothing; see event_prune_limited_v1 for its keys.
--
-- p_last, p_done  what is not zero in it. Locks: none.
CREATE OR REPLACE FUNCTION @event@.event_prune_answer_v1(p_last text, p_done boolean)
RETURNS jsonb
LANGUAGE plpgsql
IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $qretention$
BEGIN
    RETURN jsonb_build_object('events', 0, 'deliveries', 0, 'skipped', 0, 'oversize', 0, 'poison', 0,
        'unknown', 0, 'failed', 0, 'failure', NULL, 'waits', 0,
        'last', p_last, 'done', p_done);
END
$qretention$
