-- push_many(partitions, count, hashes, blob): one push to each of several partitions, all or nothing.
-- The hashes are salted with the partition by the caller's count alone; a duplicate in one partition
-- leaves out that one. Returns how many were written.
--
-- All partition rows are locked first, in ascending id and in one statement: the one order in which
-- every multi-partition writer, and retention's clean-up, takes them.
-- Locks: the partition rows until commit. One transaction.
CREATE OR REPLACE FUNCTION @broker@.push_many(p_partitions uuid[], p_count integer, p_hashes bytea,
    p_blob bytea)
RETURNS integer
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $broker$
DECLARE
    target uuid;
    resolved integer := 0;
    written integer := 0;
BEGIN
    FOR target IN
        SELECT p.id FROM @log@.log_partitions AS p WHERE p.id = ANY (p_partitions)
        ORDER BY p.id FOR UPDATE
    LOOP
        resolved := resolved + 1;
        written := written + ((@broker@.push(target, p_count, p_hashes, p_blob)).base_offset
            IS NOT NULL)::integer;
    END LOOP;
    IF resolved < cardinality(p_partitions) THEN
        RAISE EXCEPTION 'resolved % of % partitions', resolved, cardinality(p_partitions)
            USING ERRCODE = 'foreign_key_violation', HINT = 'Provision them anew and push again.';
    END IF;
    RETURN written;
END
$broker$
