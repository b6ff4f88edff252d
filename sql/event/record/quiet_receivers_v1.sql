-- signature: quiet_receivers_v1(bigint)
--
-- Receivers that have succeeded at nothing for so long: what the last successes are kept for.
--
-- p_older_than_seconds  how long; NULL: reports nobody. Negative: refused (22023)
--
-- Columns: receiver_key, last_succeeded_at (NULL: never), the longest quiet first. A receiver
-- counts if a delivery of it exists or one that succeeded has been pruned; its last success is the
-- newest of both, but for what is dated 'infinity' or outside the years 1 to 9998. Exactly so long
-- ago is not longer. The state of a delivery does not matter: a replay reopens it and clears no
-- success.
-- Locks: none. Reads the deliveries once; it is a report, not for every minute.
CREATE OR REPLACE FUNCTION @event@.quiet_receivers_v1(
    p_older_than_seconds bigint,
    OUT receiver_key text,
    OUT last_succeeded_at timestamptz
)
RETURNS SETOF record
LANGUAGE plpgsql
STABLE
SET search_path = pg_catalog, pg_temp
AS $qretention$
DECLARE
    v_cutoff timestamptz;
BEGIN
    IF p_older_than_seconds IS NULL THEN
        RETURN;
    END IF;
    IF p_older_than_seconds < 0 THEN
        RAISE EXCEPTION 'nobody can be quiet for % seconds', p_older_than_seconds
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Pass 0 or more.';
    END IF;
    v_cutoff := '-infinity';
    IF p_older_than_seconds < extract(epoch FROM now()) + 62135596800 THEN
        v_cutoff := now() - make_interval(secs => p_older_than_seconds);
    END IF;
    RETURN QUERY
    SELECT r.receiver::text, max(r.success)
    FROM (
        SELECT d.receiver_key AS receiver, max(d.succeeded_at) FILTER (
            WHERE d.succeeded_at >= '0001-01-01 00:00:00+00'::timestamptz
                AND d.succeeded_at < '9999-01-01 00:00:00+00'::timestamptz) AS success
        FROM @delivery_table@ AS d
        GROUP BY d.receiver_key
        UNION ALL
        SELECT s.receiver_key, s.last_succeeded_at FROM @success_table@ AS s
    ) AS r
    GROUP BY r.receiver
    HAVING max(r.success) < v_cutoff OR max(r.success) IS NULL
    ORDER BY max(r.success) NULLS FIRST, r.receiver::text COLLATE "C";
END
$qretention$
