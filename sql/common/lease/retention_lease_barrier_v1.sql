-- signature: retention_lease_barrier_v1(bigint)
--
-- Waits, within lock_timeout, until no step of an earlier claim is under way: such a step holds the
-- shared form of the lock from before it read the fence until it is over, and a later one reads the new fence.
-- p_key: the advisory lock key. Locks: that one, exclusively, until the end of this transaction.
CREATE OR REPLACE FUNCTION @part@.retention_lease_barrier_v1(p_key bigint)
RETURNS boolean
LANGUAGE plpgsql
VOLATILE
SET search_path = pg_catalog, pg_temp
AS $qretention$
BEGIN
    PERFORM pg_advisory_xact_lock(p_key);
    RETURN true;
END
$qretention$
