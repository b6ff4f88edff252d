-- signature: record_event_check_v1(text, text[], jsonb, text, bigint, text, int)
--
-- Whether an event may be recorded as asked. Parameters as record_event_v1; raises 22023 with what
-- to do about it. Locks: none.
CREATE OR REPLACE FUNCTION @event@.record_event_check_v1(
    p_name text,
    p_receivers text[],
    p_targets jsonb,
    p_dedupe_key text,
    p_retention_seconds bigint,
    p_delete_when text,
    p_max_attempts int
)
RETURNS void
LANGUAGE plpgsql
IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $qretention$
DECLARE
    v_wrong text;
    v_hint text;
BEGIN
    IF COALESCE(p_name, '') !~ '[^[:space:]]' THEN
        v_wrong := 'an event needs a name';
        v_hint := 'Pass what happened, in a word or two.';
    ELSIF p_retention_seconds NOT BETWEEN 1 AND 2147483647 THEN
        v_wrong := format('a window of %s seconds cannot be recorded', p_retention_seconds);
        v_hint := 'A window is a whole number of seconds from 1 to 2147483647, about 68 years.';
    ELSIF p_delete_when NOT IN ('', 'succeeded', 'settled') THEN
        v_wrong := format('there is no policy %L', p_delete_when);
        v_hint := 'Pass succeeded, settled, or nothing to keep the event for a window.';
    ELSIF p_delete_when <> '' AND p_retention_seconds IS NOT NULL THEN
        v_wrong := format('a window and the policy %L exclude each other', p_delete_when);
        v_hint := 'Pass one of the two.';
    ELSIF p_delete_when <> '' AND p_dedupe_key IS NOT NULL THEN
        v_wrong := format('a dedupe key protects nothing under the policy %L', p_delete_when);
        v_hint := 'The key is unique only while the row exists, and the row goes as soon as it is '
            'consumed. Give the event a window as long as the key has to hold.';
    ELSIF p_max_attempts < 1 THEN
        v_wrong := format('%s attempts deliver nothing', p_max_attempts);
        v_hint := 'Pass 1 or more.';
    ELSIF array_ndims(p_receivers) > 1 THEN
        v_wrong := format('receivers in %s dimensions are not a list', array_ndims(p_receivers));
        v_hint := 'Pass an array of one dimension.';
    ELSIF array_position(p_receivers, NULL) IS NOT NULL OR '' = ANY (p_receivers) THEN
        v_wrong := 'a receiver without a key is owed nothing';
        v_hint := 'Leave it out of the list of receivers.';
    ELSIF jsonb_typeof(p_targets) <> 'object' OR EXISTS (
        SELECT FROM jsonb_each(CASE jsonb_typeof(p_targets) WHEN 'object' THEN p_targets END) AS t
        WHERE jsonb_typeof(t.value) <> 'array'
    ) THEN
        v_wrong := 'targets that name no receiver are owed nothing';
        v_hint := 'Pass an object with an array of targets for each receiver.';
    ELSIF p_targets ? '' THEN
        v_wrong := 'targets of a receiver without a key are owed to nobody';
        v_hint := 'Leave the empty key out of the object of targets.';
    ELSIF EXISTS (
        SELECT FROM jsonb_each(p_targets) AS t
        CROSS JOIN LATERAL jsonb_array_elements(t.value) AS e (target)
        WHERE e.target = 'null'
    ) THEN
        v_wrong := 'a target that is null cannot be delivered to';
        v_hint := 'Leave it out, or name the receiver among the receivers if it has no targets.';
    END IF;
    IF v_wrong IS NOT NULL THEN
        RAISE EXCEPTION '%', v_wrong
            USING ERRCODE = 'invalid_parameter_value', HINT = v_hint;
    END IF;
END
$qretention$
