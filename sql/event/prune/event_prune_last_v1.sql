-- signature: event_prune_last_v1(text, timestamptz, bigint, timestamptz, bigint)
--
-- Writes the "last" of a step, which event_prune_cursor_v1 reads: arm|key|id|low|chunked, UTC, any
-- but the arm empty. Parameters as the columns there. Locks: none.
CREATE OR REPLACE FUNCTION @event@.event_prune_last_v1(
    p_arm text,
    p_key timestamptz,
    p_id bigint,
    p_low timestamptz,
    p_chunked bigint
)
RETURNS text
LANGUAGE plpgsql
STABLE
SET search_path = pg_catalog, pg_temp
AS $qretention$
DECLARE
    v_shape constant text := 'YYYY-MM-DD HH24:MI:SS.US';
    v_first constant timestamptz := '0001-01-01 00:00:00+00';
BEGIN
    RETURN concat_ws('|', p_arm,
        COALESCE(to_char(p_key AT TIME ZONE 'UTC', v_shape), ''),
        COALESCE(p_id::text, ''),
        COALESCE(to_char(GREATEST(p_low, v_first) AT TIME ZONE 'UTC', v_shape), ''),
        COALESCE(p_chunked::text, ''));
END
$qretention$
