-- signature: retention_lease_claim_v1(text, bigint, bigint, bigint)
--
-- Claims the lease, if it is free, expired or the caller's own, and a cycle is due. A lease that was begun in
-- the future is both: the clock has stepped back, and what it says would hold for as long as it was ahead.
--
-- p_holder       the caller, unique in the cluster
-- p_lease_ms     how long the claim lasts without renewal
-- p_interval_ms  the cluster's interval: the next cycle is due that long after this claim
-- p_key          advisory lock key; while another session holds it (a session gate), nothing is claimed
--
-- One row: state ('granted', 'busy', 'paused'); fence of the claim; barrier: steps of an earlier claim
-- may be under way, so the caller must pass retention_lease_barrier_v1 before its first step;
-- wait_ms until trying again makes sense.
--
-- Locks: the lease row, when it is claimed. Never waits for a sweep. One transaction.
CREATE OR REPLACE FUNCTION @part@.retention_lease_claim_v1(
    p_holder text,
    p_lease_ms bigint,
    p_interval_ms bigint,
    p_key bigint,
    OUT state text,
    OUT fence bigint,
    OUT barrier boolean,
    OUT wait_ms bigint
)
LANGUAGE plpgsql
VOLATILE
SET search_path = pg_catalog, pg_temp
AS $qretention$
DECLARE
    v_clock timestamptz;
    v_lease @part@.retention_lease;
    v_ahead boolean;
    v_free boolean;
    v_due boolean;
BEGIN
    SELECT l.* INTO v_lease FROM @part@.retention_lease AS l;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the lease has no row'
            USING ERRCODE = 'undefined_object', HINT = 'Install the part again.';
    END IF;
    -- Later than the claim that was just read, unless the clock went back; by less than an interval, it is waited for.
    v_clock := clock_timestamp();
    v_ahead := coalesce(v_lease.last_start - v_clock
        > GREATEST(LEAST(p_interval_ms, 31536000000), 1000) * interval '1 millisecond', false);
    v_free := v_ahead OR v_lease.holder IS NULL OR v_lease.holder = p_holder OR v_lease.expires_at < v_clock;
    v_due := v_ahead OR v_lease.next_due <= v_clock;
    IF v_lease.enabled AND v_free AND v_due AND pg_try_advisory_xact_lock_shared(p_key) THEN
        -- The condition again, on the row as it is once it is locked: of two claims one is left.
        UPDATE @part@.retention_lease AS l
        SET holder = p_holder,
            fence = l.fence + 1,
            barrier_owed = true,
            expires_at = v_clock + p_lease_ms * interval '1 millisecond',
            next_due = v_clock + LEAST(p_interval_ms, 31536000000) * interval '1 millisecond',
            last_start = v_clock,
            runs = l.runs + 1
        WHERE l.fence = v_lease.fence AND l.enabled
            AND (v_ahead OR l.holder IS NULL OR l.holder = p_holder OR l.expires_at < v_clock)
        RETURNING l.fence INTO fence;
        IF FOUND THEN
            state := 'granted';
            barrier := v_lease.barrier_owed OR v_lease.holder IS NOT NULL;
            wait_ms := 0;
            RETURN;
        END IF;
    END IF;
    state := CASE WHEN v_lease.enabled THEN 'busy' ELSE 'paused' END;
    barrier := false;
    -- No sooner than a claim could succeed: when the cycle is due; past that, when the leader at work would be
    -- given up (it renews, so it is looked at once a lease); and where it is due and nobody's, yet somebody was
    -- faster or holds the session gate, in an interval.
    wait_ms := CASE
        WHEN v_free AND v_due THEN p_interval_ms
        ELSE ceil(1000 * extract(epoch FROM
            CASE WHEN v_lease.next_due > v_clock THEN v_lease.next_due ELSE v_lease.expires_at END - v_clock))
        END;
END
$qretention$
