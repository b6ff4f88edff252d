-- signature: event_prune_success_v1(text[], timestamptz[])
--
-- Records receivers' newest successes, each only if it is later than what is recorded.
--
-- p_receivers, p_newest  one entry a receiver; NULL for one that never succeeded
--
-- Locks: the receivers' rows, in the order of the keys by their bytes, so that two prunes never
-- wait for each other both. Last in its transaction, so that what others wait for is held for one
-- statement and a commit. A row that is late enough already is not touched.
-- A prune of another make may take the keys in any order: the wait ends by the caller's
-- lock_timeout (event_prune_patience_v1). Nothing is lost: the transaction rolls back and the next
-- prune finds the same.
CREATE OR REPLACE FUNCTION @event@.event_prune_success_v1(
    p_receivers text[],
    p_newest timestamptz[]
)
RETURNS void
LANGUAGE plpgsql
VOLATILE
SET search_path = pg_catalog, pg_temp
SET row_security = off
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_nestloop = on
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $qretention$
BEGIN
    IF cardinality(p_receivers) = 0 THEN
        RETURN;
    END IF;
    INSERT INTO @success_table@ AS s (receiver_key, last_succeeded_at)
    SELECT n.receiver, n.newest
    FROM unnest(p_receivers, p_newest) AS n (receiver, newest)
    WHERE n.newest IS NOT NULL AND NOT EXISTS (
        SELECT FROM @success_table@ AS k
        WHERE k.receiver_key = n.receiver AND k.last_succeeded_at >= n.newest
    )
    ORDER BY n.receiver COLLATE "C"
    ON CONFLICT (receiver_key) DO UPDATE
    SET last_succeeded_at = EXCLUDED.last_succeeded_at
    WHERE s.last_succeeded_at < EXCLUDED.last_succeeded_at;
END
$qretention$
