-- signature: get_retention_timeseries_v1(jsonb)
--
-- What retention deleted, per minute and type, from the history.
--
-- p_filters  an object; each key may be missing or null:
--            from     ISO time, inclusive; default 24 hours ago
--            to       ISO time, exclusive; default none
--            queue    name of a queue
--            _tenant  UUID of its tenant
--            A time without zone is UTC. With queue or _tenant, rows of partitions that no longer
--            exist are left out, since nothing says any more whose they were.
--
-- Returns {"series": [{"bucket": ISO minute in UTC, "type": the history's type, "messages": their
-- sum, "steps": history rows}, ..]}, oldest first, at most 100,000 points. Partition events, the
-- types that begin and end with two underscores, are left out: they count no messages.
--
-- Locks: none. Reads one snapshot. Runs as its caller.
CREATE OR REPLACE FUNCTION @log@.get_retention_timeseries_v1(p_filters jsonb)
RETURNS jsonb
LANGUAGE plpgsql
STABLE
SET search_path = pg_catalog, pg_temp
SET timezone = 'UTC'
SET datestyle = 'ISO'
AS $qretention$
DECLARE
    v_from constant timestamptz :=
        COALESCE((p_filters ->> 'from')::timestamptz, now() - make_interval(hours => 24));
    v_to constant timestamptz := COALESCE((p_filters ->> 'to')::timestamptz, 'infinity');
    v_queue constant text := p_filters ->> 'queue';
    v_tenant constant uuid := (p_filters ->> '_tenant')::uuid;
BEGIN
    RETURN jsonb_build_object('series', (
        SELECT COALESCE(
            jsonb_agg(
                jsonb_build_object(
                    'bucket', to_char(point.bucket, 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
                    'type', point.type,
                    'messages', point.messages,
                    'steps', point.steps
                )
                ORDER BY point.bucket, point.type COLLATE "C"
            ),
            '[]'::jsonb
        )
        FROM (
            SELECT
                date_trunc('minute', h.executed_at) AS bucket,
                h.retention_type::text AS type,
                COALESCE(sum(h.messages_deleted), 0) AS messages,
                count(*) AS steps
            FROM @log@.retention_history AS h
            WHERE h.executed_at >= v_from
              AND h.executed_at < v_to
              -- Not LIKE: there an underscore stands for any character.
              AND NOT (
                  COALESCE(length(h.retention_type) >= 4, false)
                  AND left(h.retention_type, 2) = '__'
                  AND right(h.retention_type, 2) = '__'
              )
              AND (
                  (v_queue IS NULL AND v_tenant IS NULL)
                  OR EXISTS (
                      SELECT
                      FROM @log@.log_partitions AS p
                      JOIN @log@.queues AS q ON q.id = p.queue_id
                      WHERE p.id = h.partition_id
                        AND (v_queue IS NULL OR q.name = v_queue)
                        AND (v_tenant IS NULL OR q.tenant_id = v_tenant)
                  )
              )
            GROUP BY 1, 2
            ORDER BY 1, 2
            LIMIT 100000
        ) AS point
    ));
END
$qretention$
