-- signature: event_prune_find_v1(text, timestamp, timestamp, bigint, int, int)
--
-- Finds the next events of an arm with nothing owed on them, page by page.
--
-- p_arm, p_before, p_after, p_after_id  as event_prune_page_v1
-- p_want  most events to find
-- p_look  about how many to look at, so that one statement does not read through millions that are owed
--
-- Columns: ids and keys found, in order; owed_key and unknown as event_prune_page_v1, of all pages;
-- ended: nothing else is in the range; last_key and last_id, where the look ended if it did not find
-- p_want and the range goes on.
--
-- The first page is little more than what is wanted, which is all it takes while there is a backlog;
-- when that turns out to be kept, thousands more are looked at in one statement.
-- Locks: none.
CREATE OR REPLACE FUNCTION @event@.event_prune_find_v1(
    p_arm text,
    p_before timestamp,
    p_after timestamp,
    p_after_id bigint,
    p_want int,
    p_look int,
    OUT ids bigint[],
    OUT keys timestamp[],
    OUT owed_key timestamp,
    OUT unknown int,
    OUT ended boolean,
    OUT last_key timestamp,
    OUT last_id bigint
)
LANGUAGE plpgsql
VOLATILE
SET search_path = pg_catalog, pg_temp
AS $qretention$
DECLARE
    v_page record;
    v_size int := p_want + 1;
    v_looked int := 0;
BEGIN
    ids := '{}';
    keys := '{}';
    unknown := 0;
    last_key := p_after;
    last_id := p_after_id;
    LOOP
        SELECT p.* INTO v_page
        FROM @event@.event_prune_page_v1(p_arm, p_before, last_key, last_id, v_size, v_looked > 0) AS p;
        ids := ids || v_page.ids;
        keys := keys || v_page.keys;
        owed_key := LEAST(owed_key, v_page.owed_key);
        unknown := unknown + v_page.unknown;
        ended := v_page.last_key IS NULL;
        EXIT WHEN ended OR cardinality(ids) > p_want;
        last_key := v_page.last_key;
        last_id := v_page.last_id;
        v_looked := v_looked + v_size;
        EXIT WHEN v_looked >= p_look;
        v_size := LEAST(GREATEST(v_size * 4, 8192), 65536);
    END LOOP;
    IF cardinality(ids) > p_want THEN
        ids := ids[1:p_want];
        keys := keys[1:p_want];
        ended := false;
    END IF;
END
$qretention$
