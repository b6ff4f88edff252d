-- signature: retention_fence_v1(bigint, bigint)
--
-- Goes before a step in the step's own transaction: refuses it with QR002 unless the claim is in force.
-- p_fence: of the claim; p_key: the advisory lock key.
--
-- The shared lock first, then the fence in a statement of its own, whose snapshot is later: a claim that
-- commits after that look waits, in retention_lease_barrier_v1, until this transaction is over.
-- Locks: the advisory lock, shared, until the transaction ends; none on the lease row, so renewals never wait.
CREATE OR REPLACE FUNCTION @part@.retention_fence_v1(p_fence bigint, p_key bigint)
RETURNS void
LANGUAGE plpgsql
VOLATILE
SET search_path = pg_catalog, pg_temp
AS $qretention$
BEGIN
    IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
        RAISE EXCEPTION 'the fence needs READ COMMITTED, not %', upper(current_setting('transaction_isolation'))
            USING ERRCODE = 'QR004',
                HINT = 'It must be read with a snapshot later than its lock: BEGIN ISOLATION LEVEL READ COMMITTED.';
    END IF;
    PERFORM pg_advisory_xact_lock_shared(p_key);
    IF NOT EXISTS (
        SELECT FROM @part@.retention_lease AS l WHERE l.fence = p_fence AND l.holder IS NOT NULL
    ) THEN
        RAISE EXCEPTION 'the lease was taken over: fence % is no longer in force', p_fence
            USING ERRCODE = 'QR002', HINT = 'Another instance leads. Claim the lease again.';
    END IF;
END
$qretention$
