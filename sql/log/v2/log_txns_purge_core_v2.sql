-- signature: log_txns_purge_core_v2(uuid, timestamptz, int, boolean)
--
-- The work of log_txns_purge_step_v2: delete a batch of sidecar rows first, then lock the
-- partition, briefly, to move the sidecar's watermark.
--
-- p_pid       the partition
-- p_cutoff    older rows go; NULL: nothing goes
-- p_max_rows  most rows to delete; NULL and anything below 1 count as 1
-- p_guard     true: do nothing where the cutoff is later than now(), and say so
--
-- Columns: deleted rows and messages of this step, watermark after it, done (nothing deletable is
-- left), refused (by the guard). A partition that does not exist: 0, 0, 0, true.
--
-- A push that looks for duplicates holds the partition's lock: it still sees txns_start and the
-- rows above it stand still, since this step cannot commit meanwhile.
--
-- Locks, yielding, errors and planner settings are those of log_retention_core_v2, over log_txns.
-- Writes no history. A step that is done sets the partition's own floor (retention_floors).
CREATE OR REPLACE FUNCTION @log@.log_txns_purge_core_v2(
    p_pid uuid,
    p_cutoff timestamptz,
    p_max_rows int,
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
    v_txns_start bigint;
    v_look bigint := LEAST(v_limit, 16);
    v_base bigint;
    v_end bigint;
    v_created timestamptz;  -- of a row, then of what is left at the watermark
    v_seen bigint;
    v_goes boolean;         -- the whole batch goes
    v_upper bigint;         -- rows below it go
    v_new bigint;           -- one past the last deleted offset
    v_floor timestamptz;
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
    refused := COALESCE(p_guard AND p_cutoff > now(), false);
    IF refused THEN
        watermark := -1;
        done := false;
        RETURN;
    END IF;
    -- How far the rows that go reach: a short look, then the whole batch once, in the hope that all
    -- of it goes, and only then a look through the batch. One partition is joined, so the rows come
    -- as its look-up orders them.
    LOOP
        v_seen := 0;
        v_new := NULL;
        FOR v_txns_start, v_base, v_end, v_created IN
            SELECT p.txns_start, t.base_offset, t.end_offset, t.created_at
            FROM @log@.log_partitions AS p
            LEFT JOIN LATERAL (
                SELECT x.base_offset, x.end_offset, x.created_at
                FROM @log@.log_txns AS x
                WHERE x.partition_id = p_pid AND x.base_offset >= p.txns_start
                ORDER BY x.base_offset
                LIMIT v_look
            ) AS t ON true
            WHERE p.id = p_pid
        LOOP
            EXIT WHEN (v_created < p_cutoff) IS NOT TRUE;
            v_seen := v_seen + 1;
            v_upper := v_base + 1;
            v_new := v_end + 1;
        END LOOP;
        EXIT WHEN v_seen < v_look OR v_look = v_limit;

        SELECT max(b.base_offset) + 1, max(b.end_offset) + 1,
               count(b.created_at) = count(*) AND max(b.created_at) < p_cutoff
        INTO v_upper, v_new, v_goes
        FROM (
            SELECT t.base_offset, t.end_offset, t.created_at
            FROM @log@.log_txns AS t
            WHERE t.partition_id = p_pid AND t.base_offset >= v_txns_start
            ORDER BY t.base_offset
            LIMIT v_limit
        ) AS b;
        EXIT WHEN v_goes;
        v_look := v_limit;
    END LOOP;
    watermark := COALESCE(v_txns_start, 0);
    IF v_new IS NULL THEN
        RETURN;
    END IF;

    v_session_wait := current_setting('lock_timeout');
    v_started := clock_timestamp();
    BEGIN
        v_set := set_config('lock_timeout', @log@.retention_late_wait_v2(v_started)::text, true);
        DELETE FROM @log@.log_txns AS t
        WHERE t.partition_id = p_pid AND t.base_offset >= v_txns_start AND t.base_offset < v_upper;
        GET DIAGNOSTICS deleted = ROW_COUNT;

        IF deleted = 0 THEN
            SELECT p.txns_start INTO v_txns_start FROM @log@.log_partitions AS p WHERE p.id = p_pid;
        ELSE
            -- Locked and moved at once. Where another step has moved it meanwhile, what it is now
            -- must be known first.
            v_set := set_config('lock_timeout', @log@.retention_late_wait_v2(v_started)::text,
                true);
            UPDATE @log@.log_partitions AS p
            SET txns_start = GREATEST(v_new, v_txns_start)
            WHERE p.id = p_pid AND p.txns_start = v_txns_start;
            IF NOT FOUND THEN
                SELECT p.txns_start INTO v_txns_start
                FROM @log@.log_partitions AS p
                WHERE p.id = p_pid
                FOR NO KEY UPDATE;
                UPDATE @log@.log_partitions AS p
                SET txns_start = v_new
                WHERE p.id = p_pid AND p.txns_start < v_new;
            END IF;
        END IF;
    EXCEPTION WHEN lock_not_available THEN
        RAISE EXCEPTION 'partition % was busy, the batch is lost', p_pid
            USING ERRCODE = 'QR001',
                DETAIL = SQLERRM,
                HINT = 'Try again with a smaller batch; after three losses use '
                    'log_txns_purge_step_v1, which locks first, with at most 50 rows.';
    END;
    v_set := set_config('lock_timeout', v_session_wait, true);
    IF v_txns_start IS NULL THEN
        RETURN;
    END IF;

    IF deleted = 0 AND watermark = v_txns_start THEN
        -- A trigger of the host's keeps them: so does the watermark, and there is no more to do.
        RETURN;
    END IF;
    v_new := CASE WHEN deleted > 0 THEN GREATEST(v_new, v_txns_start) ELSE v_txns_start END;
    watermark := v_new;
    SELECT t.created_at INTO v_created
    FROM @log@.log_txns AS t
    WHERE t.partition_id = p_pid AND t.base_offset >= v_new
    ORDER BY t.base_offset
    LIMIT 1;
    done := (v_created < p_cutoff) IS NOT TRUE;
    IF deleted = 0 THEN
        RETURN;
    END IF;

    messages := v_new - v_txns_start;
    IF NOT done THEN
        RETURN;
    END IF;
    -- The floor, exact while the lock holds pushes off. Where a refresh is at the row, it is left to
    -- that: pushes wait.
    v_floor := GREATEST(LEAST(v_created, now()), '4714-11-24 00:00:00+00 BC');
    BEGIN
        v_set := set_config('lock_timeout', '1', true);
        UPDATE @log@.retention_floors AS f
        SET txns_floor = v_floor,
            look_xid = CASE WHEN v_floor < f.txns_floor
                            THEN pg_current_xact_id()::text::bigint ELSE f.look_xid END
        WHERE f.partition_id = p_pid;
        v_set := set_config('lock_timeout', v_session_wait, true);
    EXCEPTION WHEN lock_not_available THEN
        NULL;
    END;
END
$qretention$
