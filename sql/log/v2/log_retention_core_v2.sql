-- signature: log_retention_core_v2(uuid, timestamptz, timestamptz, int, text, boolean)
--
-- The work of both second steps on segments, retention and eviction: delete a batch first, then lock
-- the partition, briefly, to move the watermark.
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
-- What lies below the boundary is met by nobody but another step, which is why it may go before the
-- lock is taken: pushes append, and a push holds off the commit through the partition's lock. A step
-- that deleted beside this one is waited for; this one then counts only its own rows, against the
-- watermark that it reads again under the lock.
--
-- Locks: segment rows as deleted, then the partition row FOR NO KEY UPDATE (excludes pushes, clean-ups
-- and other steps, and lets a pop create its consumer row) until the transaction ends. Others (a queue
-- drop that cascades, a v1 step, a clean-up) take them the other way round, and this step is the one
-- to yield: no wait is longer than qretention.late_lock_ms (200), nor than what is left of half a
-- deadlock_timeout since the first delete; with nothing left it does not wait. A session's shorter
-- lock_timeout stays in force.
--
-- One attempt a transaction. It raises, and the caller's transaction rolls back, with QR001: a lock
-- was not to be had in time; QR006: a consumer went back into the batch meanwhile; QR004: another
-- isolation level than READ COMMITTED. Writes nothing where nothing is to be deleted. Reads at most
-- p_max_rows + 1 segments. Raises the partition's own floor (retention_floors) when done.
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
AS $qretention$
DECLARE
    v_limit constant bigint := GREATEST(COALESCE(p_max_rows, 1), 1);
    v_started timestamptz;
    v_lock_timeout text;
    v_bound int;            -- how long the late lock may be waited for, in ms
    v_log_start bigint;
    v_seen bigint;          -- segments of the batch, as the snapshot of the delete has them
    v_last_end bigint;      -- the last deleted offset
    v_past_all boolean;     -- the batch reaches past what rule 1 alone allows
    v_consumed bigint;      -- the slowest group's cursor; NULL: nobody consumes
    v_head record;          -- what is left at the watermark
BEGIN
    PERFORM @log@.retention_require_read_committed_v1();
    deleted := 0;
    messages := 0;
    watermark := 0;
    done := true;
    refused := COALESCE(p_guard AND GREATEST(p_all_cutoff, p_completed_cutoff) > now(), false);
    IF refused THEN
        done := false;
        RETURN;
    END IF;
    SELECT p.log_start INTO v_log_start
    FROM @log@.log_partitions AS p
    WHERE p.id = p_pid;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    watermark := v_log_start;
    IF p_all_cutoff IS NULL AND p_completed_cutoff IS NULL THEN
        RETURN;
    END IF;

    v_started := clock_timestamp();
    v_lock_timeout := current_setting('lock_timeout');
    PERFORM set_config('lock_timeout',
        @log@.retention_late_wait_v2(v_lock_timeout, interval '0')::text, true);

    -- b1 and b2 are where the prefix of each rule ends, and NULL where it does not end in the batch.
    WITH batch AS MATERIALIZED (
        SELECT s.base_offset,
               s.created_at < p_all_cutoff AS by_all,
               s.created_at < p_completed_cutoff AND s.end_offset <= (
                   SELECT min(COALESCE(c.committed, -1))
                   FROM @log@.log_consumers AS c
                   WHERE c.partition_id = p_pid
               ) AS by_completed
        FROM @log@.log_segments AS s
        WHERE s.partition_id = p_pid
          AND s.base_offset >= v_log_start
        ORDER BY s.base_offset
        LIMIT v_limit
    ), edges AS MATERIALIZED (
        SELECT min(b.base_offset) FILTER (WHERE b.by_all IS NOT TRUE) AS b1,
               min(b.base_offset) FILTER (WHERE b.by_completed IS NOT TRUE) AS b2,
               max(b.base_offset) AS last
        FROM batch AS b
    ), gone AS (
        DELETE FROM @log@.log_segments AS s
        WHERE s.partition_id = p_pid
          AND s.base_offset >= v_log_start
          AND s.base_offset < (
              SELECT CASE WHEN e.b1 IS NULL OR e.b2 IS NULL THEN e.last + 1
                          ELSE GREATEST(e.b1, e.b2)
                     END
              FROM edges AS e
          )
        RETURNING s.base_offset, s.end_offset
    )
    SELECT count(*), max(g.end_offset), COALESCE(max(g.base_offset) >= (SELECT e.b1 FROM edges AS e), false)
    INTO deleted, v_last_end, v_past_all
    FROM gone AS g;
    NULL;
END
$qretention$
