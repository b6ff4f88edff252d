-- signature: retention_lease_release_v1(bigint, boolean, boolean)
--
-- Gives the lease back.
--
-- p_fence      of the claim
-- p_hand_over  the cycle was not finished, so the next one is due at once, for whoever comes first
-- p_clean      no step of this claim or an earlier one can be under way: the caller passed the barrier
--              where one was owed, and has the answer to each of its steps. Otherwise the next claim must wait.
--
-- Returns whether the claim was still in force. Locks: the lease row. One transaction.
CREATE OR REPLACE FUNCTION @part@.retention_lease_release_v1(
    p_fence bigint,
    p_hand_over boolean,
    p_clean boolean
)
RETURNS boolean
LANGUAGE plpgsql
VOLATILE
SET search_path = pg_catalog, pg_temp
AS $qretention$
BEGIN
    UPDATE @part@.retention_lease AS l
    SET holder = NULL,
        barrier_owed = p_clean IS NOT TRUE,
        expires_at = '-infinity',
        last_end = clock_timestamp(),
        next_due = CASE WHEN p_hand_over THEN '-infinity' ELSE l.next_due END
    WHERE l.fence = p_fence AND l.holder IS NOT NULL;
    RETURN FOUND;
END
$qretention$
