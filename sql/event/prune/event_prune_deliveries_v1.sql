-- signature: event_prune_deliveries_v1(bigint[])
--
-- Deletes deliveries that the transaction has locked, and says what each receiver's newest success
-- among them was. Part of a prune; by itself it asks nothing and keeps nothing.
--
-- p_ids  the deliveries
-- Columns: deliveries, how many went; receivers and newest, one entry for each that ever succeeded.
-- A success dated 'infinity' or outside the years 1 to 9998 is nobody's newest.
-- Raises 27000 where one did not go: a trigger of the host's keeps it, and it is not to lose its
-- event.
-- Locks: the rows, which are the caller's already.
CREATE OR REPLACE FUNCTION @event@.event_prune_deliveries_v1(
    p_ids bigint[],
    OUT deliveries bigint,
    OUT receivers text[],
    OUT newest timestamptz[]
)
LANGUAGE plpgsql
VOLATILE
SET search_path = pg_catalog, pg_temp
SET row_security = off
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
AS $qretention$
BEGIN
    WITH gone AS (
        DELETE FROM @delivery_table@ AS d
        WHERE d.id = ANY (p_ids)
        RETURNING d.receiver_key, d.succeeded_at
    )
    SELECT
        COALESCE(sum(r.deliveries), 0),
        COALESCE(array_agg(r.receiver_key) FILTER (WHERE r.newest IS NOT NULL), '{}'),
        COALESCE(array_agg(r.newest) FILTER (WHERE r.newest IS NOT NULL), '{}')
    INTO deliveries, receivers, newest
    FROM (
        SELECT g.receiver_key, count(*) AS deliveries,
            max(g.succeeded_at) FILTER (
                WHERE g.succeeded_at >= '0001-01-01 00:00:00+00'::timestamptz
                    AND g.succeeded_at < '9999-01-01 00:00:00+00'::timestamptz) AS newest
        FROM gone AS g
        GROUP BY g.receiver_key
    ) AS r;
    IF deliveries <> cardinality(p_ids) THEN
        RAISE EXCEPTION '% of % deliveries were kept by a trigger',
            cardinality(p_ids) - deliveries, cardinality(p_ids)
            USING ERRCODE = 'triggered_data_change_violation';
    END IF;
END
$qretention$
