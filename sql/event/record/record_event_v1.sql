-- signature: record_event_v1(text, jsonb, text[], jsonb, text, bigint, text, text, int, timestamptz)
--
-- Records an event and what is owed on it, in the caller's transaction: it exists if that commits.
--
-- p_name               what happened
-- p_payload            with what
-- p_receivers          keys of the receivers that are owed it, one delivery each
-- p_targets            receivers that are owed it once a target: {"receiver": ["target", ...], ...}
-- p_dedupe_key         a second event with the same key is refused (23505) for as long as this row
--        exists
-- p_retention_seconds  a window of its own, 1 to 2147483647 seconds; NULL: the default window
-- p_delete_when        'succeeded' or 'settled': delete it once its deliveries are; '': by window
-- p_suppressed_reason  not empty: record the event, and owe it to nobody
-- p_max_attempts       copied to each delivery
-- p_available_at       when delivery may begin; NULL: now
--
-- Returns the event's id. The policy is copied to the row here and read from the row alone, so what
-- a later caller passes changes nothing for events already recorded.
-- Raises 22023 where these do not go together: a key protects only while the row exists, so it is
-- refused with a policy that may delete the row at any moment; a window and a policy exclude each
-- other. Locks: those of its inserts.
CREATE OR REPLACE FUNCTION @event@.record_event_v1(
    p_name text,
    p_payload jsonb DEFAULT '{}',
    p_receivers text[] DEFAULT '{}',
    p_targets jsonb DEFAULT '{}',
    p_dedupe_key text DEFAULT NULL,
    p_retention_seconds bigint DEFAULT NULL,
    p_delete_when text DEFAULT '',
    p_suppressed_reason text DEFAULT '',
    p_max_attempts int DEFAULT 5,
    p_available_at timestamptz DEFAULT NULL
)
RETURNS bigint
LANGUAGE plpgsql
VOLATILE
SET search_path = pg_catalog, pg_temp
AS $qretention$
DECLARE
    v_id bigint;
BEGIN
    PERFORM @event@.record_event_check_v1(p_name, p_receivers, p_targets, p_dedupe_key,
        p_retention_seconds, p_delete_when, p_max_attempts);
    INSERT INTO @event_table@
        (name, payload, dedupe_key, recorded_at, retention_seconds, delete_when, suppressed_reason)
    VALUES (p_name, COALESCE(p_payload, '{}'), p_dedupe_key, now(), p_retention_seconds,
        COALESCE(p_delete_when, ''), COALESCE(p_suppressed_reason, ''))
    RETURNING id INTO v_id;
    IF p_suppressed_reason <> '' THEN
        RETURN v_id;
    END IF;
    INSERT INTO @delivery_table@
        (event_id, receiver_key, target, target_digest, max_attempts, available_at)
    SELECT v_id, o.receiver, o.target,
        encode(sha256(convert_to(o.target, getdatabaseencoding())), 'hex'),
        COALESCE(p_max_attempts, 5), COALESCE(p_available_at, now())
    FROM (
        SELECT DISTINCT r.receiver, '' AS target FROM unnest(p_receivers) AS r (receiver)
        UNION
        SELECT t.receiver, e.target
        FROM jsonb_each(COALESCE(p_targets, '{}')) AS t (receiver, targets)
        CROSS JOIN LATERAL jsonb_array_elements_text(t.targets) AS e (target)
    ) AS o;
    RETURN v_id;
END
$qretention$
