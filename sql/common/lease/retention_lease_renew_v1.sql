-- signature: retention_lease_renew_v1(bigint, bigint)
--
-- Puts the expiry off. p_fence: of the claim; p_lease_ms: how long it lasts from now.
-- Returns whether the claim is still in force. Locks: the lease row. One transaction.
CREATE OR REPLACE FUNCTION @part@.retention_lease_renew_v1(p_fence bigint, p_lease_ms bigint)
RETURNS boolean
LANGUAGE plpgsql
VOLATILE
SET search_path = pg_catalog, pg_temp
AS $qretention$
BEGIN
    UPDATE @part@.retention_lease AS l
    SET expires_at = clock_timestamp() + p_lease_ms * interval '1 millisecond'
    WHERE l.fence = p_fence AND l.holder IS NOT NULL;
    RETURN FOUND;
END
$qretention$
