-- signature: log_retention_boundary_v1(uuid, bigint, timestamptz)
--
-- Where rule 1 would stop: the smallest base_offset at or above p_from whose segment is fresh
-- (created_at >= p_cutoff); if all are stale, one past the last end_offset; if there are none,
-- p_from. A NULL cutoff means that the rule is off, and nothing below p_from + 1 may go: p_from.
--
-- Unbounded by its contract: it walks every stale segment. No step calls it; it serves as an oracle
-- and for people who ask how much is due. Locks: none. Reads one snapshot. Runs as its caller.
CREATE OR REPLACE FUNCTION @log@.log_retention_boundary_v1(
    p_partition_id uuid,
    p_from bigint,
    p_cutoff timestamptz
)
RETURNS bigint
LANGUAGE plpgsql
STABLE
SET search_path = pg_catalog, pg_temp
AS $qretention$
BEGIN
    IF p_cutoff IS NULL THEN
        RETURN p_from;
    END IF;
    RETURN COALESCE(
        (
            SELECT s.base_offset
            FROM @log@.log_segments AS s
            WHERE s.partition_id = p_partition_id
              AND s.base_offset >= p_from
              AND s.created_at >= p_cutoff
            ORDER BY s.base_offset
            LIMIT 1
        ),
        (
            SELECT s.end_offset + 1
            FROM @log@.log_segments AS s
            WHERE s.partition_id = p_partition_id
              AND s.base_offset >= p_from
            ORDER BY s.base_offset DESC
            LIMIT 1
        ),
        p_from
    );
END
$qretention$
