-- signature: event_prune_cursor_v1(text, text)
--
-- Reads the "last" of a step, see event_prune_last_v1.
--
-- p_arm    the arm that is to go on
-- p_after  the text; NULL, or of another arm: from the beginning
--
-- Columns: fresh, a run begins; key and id to start after; low, the first key that was there when
-- the run began; chunked, the event that is losing its deliveries in chunks.
-- Raises 22023 for text that no step has returned. Locks: none.
CREATE OR REPLACE FUNCTION @event@.event_prune_cursor_v1(
    p_arm text,
    p_after text,
    OUT fresh boolean,
    OUT key timestamptz,
    OUT id bigint,
    OUT low timestamptz,
    OUT chunked bigint
)
LANGUAGE plpgsql
STABLE
SET search_path = pg_catalog, pg_temp
AS $qretention$
DECLARE
    -- Without a backslash: it means something else where a session reads strings as they once were.
    v_date constant text := '(?:[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}[.][0-9]{6})?';
    v_shape constant text := format(
        '^([a-z_]+)[|](%s)[|](-?[0-9]{1,19})?[|](%1$s)[|](-?[0-9]{1,19})?$', v_date);
    v_parts constant text[] := regexp_match(p_after, v_shape);
    v_wrong boolean := p_after IS NOT NULL AND v_parts IS NULL;
    v_key timestamptz;
    v_id bigint;
BEGIN
    IF v_parts IS NOT NULL THEN
        -- Of the right shape, there is still no 30th of February.
        BEGIN
            v_key := NULLIF(v_parts[2], '')::timestamp AT TIME ZONE 'UTC';
            v_id := NULLIF(v_parts[3], '')::bigint;
            low := NULLIF(v_parts[4], '')::timestamp AT TIME ZONE 'UTC';
            chunked := NULLIF(v_parts[5], '')::bigint;
        EXCEPTION WHEN data_exception THEN
            v_wrong := true;
        END;
    END IF;
    IF v_wrong THEN
        RAISE EXCEPTION 'a prune cannot go on after %', quote_literal(p_after)
            USING ERRCODE = 'invalid_parameter_value',
                HINT = 'Pass what the step before returned as "last", or NULL to begin.';
    END IF;
    fresh := true;
    key := '0001-01-01 00:00:00+00';
    id := -9223372036854775808;
    IF v_parts[1] = p_arm THEN
        fresh := v_parts[2] = '';
        key := COALESCE(v_key, low, key);
        id := COALESCE(v_id, id);
    ELSE
        low := NULL;
        chunked := NULL;
    END IF;
    IF fresh THEN
        low := NULL;
    END IF;
END
$qretention$
