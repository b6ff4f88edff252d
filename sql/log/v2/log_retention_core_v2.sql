-- signature: log_retention_core_v2(uuid, timestamptz, timestamptz, int, text, boolean)
--
-- The work of both second steps on segments, retention and eviction: delete a batch first, then
-- lock the partition, briefly, to move the watermark.
--
-- p_pid               the partition
-- p_all_cutoff        rule 1: older segments go whether consumed or not; NULL: rule off
-- p_completed_cutoff  rule 2: older segments go once every group has consumed them; NULL: rule off
-- p_max_rows          most segments to delete; NULL and anything below 1 count as 1
-- p_history_type      what to call it in retention_history; NULL: the rule that moved the boundary
-- p_guard             true: do nothing where a cutoff is later than now(), and say so
--
-- Columns: deleted and messages of this step, watermark after it, done (nothing deletable is left),
-- refused (by the guard). The rules are those of log_retention_step_v1. A partition that does not
-- exist: 0, 0, 0, true.
--
-- What lies below the boundary is met by nobody but another step, so it may go before the lock is
-- taken: pushes append, and a push holds off the commit through the partition's lock. A step that
-- deletes beside this one is waited for; this one then counts only its own rows, against the
-- watermark that it reads again under the lock.
--
-- Locks: segment rows as deleted, then the partition row FOR NO KEY UPDATE (excludes pushes,
-- clean-ups and other steps; lets a pop create its consumer row) until the transaction ends. A
-- queue drop that cascades, a v1 step and a clean-up take them the other way round, and this step
-- must be the one that yields: retention_late_wait_v2 bounds each wait. What it cannot see to: a push
-- that has waited for a queue drop for most of a deadlock_timeout looks for a deadlock while the step
-- waits behind it, finds one, and fails as such, a moment before its partition is gone.
--
-- One attempt a transaction, which is lost with QR001: a lock was not to be had in time; QR006: a
-- consumer went back into the batch meanwhile; QR004: another isolation level than READ COMMITTED.
-- Writes nothing where nothing is to be deleted. No statement reads more than p_max_rows segments
-- and one. A step that is done sets the partition's own floor (retention_floors).
--
-- The planner settings keep every plan on the primary key, in its order: a bitmap or a sort would
-- read all of a partition, never clean dead index entries, and lock rows in another order.
CREATE OR REPLACE FUNCTION @log@.log_retention_core_v2(
    p_pid uuid,
    p_all_cutoff timestamptz,
    p_completed_cutoff timestamptz,
    p_max_rows int,
    p_history_type text,
    p_guard boolean,
    OUT deleted bigint,
    OUT messages bigint,
    OUT watermark bigint,
    OUT done boolean,
    OUT refused boolean
)
LANGUAGE plpgsql
VOLATILE
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
SET jit = off
SET plan_cache_mode = force_generic_plan
AS $qretention$
DECLARE
    v_limit constant bigint := GREATEST(COALESCE(p_max_rows, 1), 1);
    v_session_wait text;
    v_set text;
    v_started timestamptz;
    v_log_start bigint;
    v_look bigint := LEAST(v_limit, 16);
    v_base bigint;          -- a segment, then what is left at the watermark
    v_end bigint;
    v_created timestamptz;
    v_seen bigint;
    v_by_all boolean;       -- the whole prefix goes by that rule
    v_by_completed boolean;
    v_upper bigint;         -- segments below it go
    v_past_all boolean;     -- the batch reaches past what rule 1 alone allows
    v_new bigint;           -- one past the last deleted offset
    v_consumed bigint;      -- the slowest group's cursor; NULL: nobody consumes
    v_floor timestamptz;
    v_pinned boolean;       -- what is left is old enough for rule 2, and held by
    v_group text;           -- this group
BEGIN
    IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
        RAISE EXCEPTION 'a retention step needs READ COMMITTED, not %',
                upper(current_setting('transaction_isolation'))
            USING ERRCODE = 'QR004',
                HINT = 'It looks again after it has its lock, so every statement needs a snapshot '
                    'of its own: BEGIN ISOLATION LEVEL READ COMMITTED.';
    END IF;
    deleted := 0;
    messages := 0;
    watermark := 0;
    done := true;
    refused := COALESCE(p_guard AND GREATEST(p_all_cutoff, p_completed_cutoff) > now(), false);
    IF refused THEN
        watermark := -1;
        done := false;
        RETURN;
    END IF;
    IF p_completed_cutoff IS NOT NULL THEN
        SELECT min(COALESCE(c.committed, -1)) INTO v_consumed
        FROM @log@.log_consumers AS c
        WHERE c.partition_id = p_pid;
    END IF;

    -- How far the prefix of either rule reaches. A short look first, which reads up to the end and
    -- no further: most steps find few rows to delete. Where it finds no end, the whole batch is read
    -- once, in the hope that all of it goes, and only then looked through. One partition is joined,
    -- so the rows come as its look-up orders them.
    LOOP
        v_seen := 0;
        v_by_all := true;
        v_by_completed := true;
        v_new := NULL;
        FOR v_log_start, v_base, v_end, v_created IN
            SELECT p.log_start, s.base_offset, s.end_offset, s.created_at
            FROM @log@.log_partitions AS p
            LEFT JOIN LATERAL (
                SELECT x.base_offset, x.end_offset, x.created_at
                FROM @log@.log_segments AS x
                WHERE x.partition_id = p_pid AND x.base_offset >= p.log_start
                ORDER BY x.base_offset
                LIMIT v_look
            ) AS s ON true
            WHERE p.id = p_pid
        LOOP
            v_by_all := (v_by_all AND v_created < p_all_cutoff) IS TRUE;
            v_by_completed := (v_by_completed AND v_created < p_completed_cutoff
                AND v_end <= v_consumed) IS TRUE;
            EXIT WHEN NOT (v_by_all OR v_by_completed);
            v_seen := v_seen + 1;
            v_upper := v_base + 1;
            v_new := v_end + 1;
            v_past_all := NOT v_by_all;
        END LOOP;
        EXIT WHEN v_seen < v_look OR v_look = v_limit;

        SELECT max(b.base_offset) + 1, max(b.end_offset) + 1,
               (max(b.created_at) < p_all_cutoff) IS NOT TRUE,
               max(b.created_at) < p_completed_cutoff AND max(b.end_offset) <= v_consumed
        INTO v_upper, v_new, v_past_all, v_by_completed
        FROM (
            SELECT s.base_offset, s.end_offset, s.created_at
            FROM @log@.log_segments AS s
            WHERE s.partition_id = p_pid AND s.base_offset >= v_log_start
            ORDER BY s.base_offset
            LIMIT v_limit
        ) AS b;
        EXIT WHEN v_by_completed OR NOT v_past_all;
        v_look := v_limit;
    END LOOP;
    watermark := COALESCE(v_log_start, 0);
    IF v_new IS NULL THEN
        RETURN;
    END IF;

    v_session_wait := current_setting('lock_timeout');
    v_started := clock_timestamp();
    BEGIN
        v_set := set_config('lock_timeout', @log@.retention_late_wait_v2(v_started)::text, true);
        DELETE FROM @log@.log_segments AS s
        WHERE s.partition_id = p_pid AND s.base_offset >= v_log_start AND s.base_offset < v_upper;
        GET DIAGNOSTICS deleted = ROW_COUNT;

        IF deleted = 0 THEN
            SELECT p.log_start INTO v_log_start FROM @log@.log_partitions AS p WHERE p.id = p_pid;
        ELSE
            -- Locked and moved at once. Where another step has moved it meanwhile, what it is now
            -- must be known first.
            v_set := set_config('lock_timeout', @log@.retention_late_wait_v2(v_started)::text,
                true);
            UPDATE @log@.log_partitions AS p
            SET log_start = GREATEST(v_new, v_log_start)
            WHERE p.id = p_pid AND p.log_start = v_log_start;
            IF NOT FOUND THEN
                SELECT p.log_start INTO v_log_start
                FROM @log@.log_partitions AS p
                WHERE p.id = p_pid
                FOR NO KEY UPDATE;
                UPDATE @log@.log_partitions AS p
                SET log_start = v_new
                WHERE p.id = p_pid AND p.log_start < v_new;
            END IF;
        END IF;
    EXCEPTION WHEN lock_not_available THEN
        RAISE EXCEPTION 'partition % was busy, the batch is lost', p_pid
            USING ERRCODE = 'QR001',
                DETAIL = SQLERRM,
                HINT = 'Try again with a smaller batch; after three losses use '
                    'log_retention_step_v1, which locks first, with at most 50 rows.';
    END;
    v_set := set_config('lock_timeout', v_session_wait, true);
    IF v_log_start IS NULL THEN
        RETURN;
    END IF;

    -- The look under the lock: consumers again, then what is left at the watermark.
    IF p_completed_cutoff IS NOT NULL THEN
        SELECT min(COALESCE(c.committed, -1)) INTO v_consumed
        FROM @log@.log_consumers AS c
        WHERE c.partition_id = p_pid;
        IF deleted > 0 AND v_past_all AND (v_consumed >= v_new - 1) IS NOT TRUE THEN
            RAISE EXCEPTION 'a consumer of partition % went back into the batch', p_pid
                USING ERRCODE = 'QR006',
                    HINT = 'Nothing was deleted. Try again: the next step sees its new place.';
        END IF;
    END IF;
    IF deleted = 0 AND watermark = v_log_start THEN
        -- A trigger of the host's keeps them: so does the watermark, and there is no more to do.
        RETURN;
    END IF;
    v_new := CASE WHEN deleted > 0 THEN GREATEST(v_new, v_log_start) ELSE v_log_start END;
    watermark := v_new;
    SELECT s.end_offset, s.created_at INTO v_end, v_created
    FROM @log@.log_segments AS s
    WHERE s.partition_id = p_pid AND s.base_offset >= v_new
    ORDER BY s.base_offset
    LIMIT 1;
    done := (v_created < p_all_cutoff
             OR v_created < p_completed_cutoff AND v_end <= v_consumed) IS NOT TRUE;
    IF deleted = 0 THEN
        RETURN;
    END IF;

    messages := v_new - v_log_start;
    -- int4 is the column's type: a batch of more messages than that says as many as fit.
    INSERT INTO @log@.retention_history (partition_id, messages_deleted, retention_type)
    VALUES (p_pid, LEAST(messages, 2147483647)::int,
        left(COALESCE(p_history_type,
            CASE WHEN v_past_all THEN 'completed_retention' ELSE 'retention' END), 50));
    IF NOT done THEN
        RETURN;
    END IF;
    -- The floor, exact while the lock holds pushes off. What is old enough for rule 2 and stayed is
    -- held by the slowest group; a step without rule 2 cannot tell, and leaves the mark alone. Where
    -- a refresh is at the row, it is left to that: pushes wait.
    v_floor := GREATEST(LEAST(v_created, now()), '4714-11-24 00:00:00+00 BC');
    v_pinned := COALESCE(v_created < p_completed_cutoff, false);
    IF v_pinned THEN
        SELECT c.consumer_group INTO v_group
        FROM @log@.log_consumers AS c
        WHERE c.partition_id = p_pid
        ORDER BY COALESCE(c.committed, -1), c.consumer_group
        LIMIT 1;
    END IF;
    BEGIN
        v_set := set_config('lock_timeout', '1', true);
        UPDATE @log@.retention_floors AS f
        SET segments_floor = v_floor,
            look_xid = CASE WHEN v_floor < f.segments_floor
                            THEN pg_current_xact_id()::text::bigint ELSE f.look_xid END,
            pinned_since = CASE WHEN p_completed_cutoff IS NULL THEN f.pinned_since
                                WHEN v_pinned THEN COALESCE(f.pinned_since, now()) END,
            pinned_group = CASE WHEN p_completed_cutoff IS NULL THEN f.pinned_group
                                ELSE v_group END,
            pinned_offset = CASE WHEN p_completed_cutoff IS NULL THEN f.pinned_offset
                                 WHEN v_pinned THEN v_end END
        WHERE f.partition_id = p_pid;
        v_set := set_config('lock_timeout', v_session_wait, true);
    EXCEPTION WHEN lock_not_available THEN
        NULL;
    END;
END
$qretention$
