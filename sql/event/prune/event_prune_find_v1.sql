-- signature: event_prune_find_v1(text, timestamptz, timestamptz, bigint, int, int)
--
-- Finds the next events of an arm with nothing owed on them.
--
-- p_arm, p_before, p_after, p_after_id  as event_prune_page_v1
-- p_want  most events to find
-- p_look  about how many to look at: one step is not to read through millions that are owed
--
-- Columns: ids and keys found, in order; ended: nothing else is due in the range; last_key and
-- last_id, how far it looked where there is more, NULL where it found more than p_want; first_key,
-- of the first event there was.
--
-- A short page first in a run: it is all it takes where nothing is there. What follows depends on
-- what was there: something due is a backlog, and a page of the right size follows; where all is
-- kept, more of that is likely, and jumped over, or, where the jump leads nowhere, looked at
-- thousands at a time. Locks: none.
CREATE OR REPLACE FUNCTION @event@.event_prune_find_v1(
    p_arm text,
    p_before timestamptz,
    p_after timestamptz,
    p_after_id bigint,
    p_want int,
    p_look int,
    OUT ids bigint[],
    OUT keys timestamptz[],
    OUT ended boolean,
    OUT last_key timestamptz,
    OUT last_id bigint,
    OUT first_key timestamptz
)
LANGUAGE plpgsql
VOLATILE
SET search_path = pg_catalog, pg_temp
AS $qretention$
DECLARE
    v_short constant int := 4;
    v_long constant int := 8192;
    v_least constant bigint := -9223372036854775808;
    v_page record;
    v_size int := CASE WHEN p_after_id = v_least THEN v_short ELSE p_want + 1 END;
    v_looked int := 0;
    v_due boolean;
    v_jumped boolean := false;
BEGIN
    ids := '{}';
    keys := '{}';
    last_key := p_after;
    last_id := p_after_id;
    LOOP
        SELECT p.* INTO v_page
        FROM @event@.event_prune_page_v1(p_arm, p_before, last_key, last_id, v_size) AS p;
        first_key := COALESCE(first_key, v_page.keys[1]);
        ended := COALESCE(cardinality(v_page.ids), 0) < v_size;
        v_due := COALESCE(false = ANY (v_page.kept), false);
        IF v_due AND NOT ended AND v_size <= p_want AND v_looked = 0 THEN
            v_size := p_want + 1;
            v_looked := 1;
            CONTINUE;
        END IF;
        IF v_due AND NOT true = ANY (v_page.kept) THEN
            ids := ids || v_page.ids;
            keys := keys || v_page.keys;
        ELSIF v_due THEN
            SELECT
                ids || array_agg(e.id ORDER BY e.position),
                keys || array_agg(e.key ORDER BY e.position)
            INTO ids, keys
            FROM unnest(v_page.ids, v_page.keys, v_page.kept)
                WITH ORDINALITY AS e (id, key, kept, position)
            WHERE NOT e.kept;
        END IF;
        v_looked := v_looked + v_size;
        EXIT WHEN ended OR cardinality(ids) > p_want;
        last_key := v_page.keys[v_size];
        last_id := v_page.ids[v_size];
        EXIT WHEN v_looked >= p_look OR (cardinality(ids) > 0 AND v_looked >= 2 * v_long);

        v_size := p_want + 1;
        IF NOT v_due AND NOT v_jumped THEN
            v_jumped := true;
            SELECT j.* INTO last_key, last_id
            FROM @event@.event_prune_jump_v1(p_arm, p_before, last_key, last_id, v_long) AS j;
            v_looked := v_looked + v_long;
            ended := last_key IS NULL;
            EXIT WHEN ended OR v_looked >= p_look;
        ELSIF NOT v_due THEN
            v_size := v_long;
        ELSE
            v_jumped := false;
        END IF;
    END LOOP;

    IF cardinality(ids) > p_want THEN
        ids := ids[1:p_want];
        keys := keys[1:p_want];
        ended := false;
        last_key := NULL;
        last_id := NULL;
    END IF;
END
$qretention$
