-- The columns of a work list, from `page`, the partitions, and `q`, the queue of each.
SELECT
    page.clock,
    page.id AS partition_id,
    page.queue_id,
    CASE WHEN q.retention_enabled
          AND q.retention_seconds OPERATOR(pg_catalog.>) 0
          AND q.retention_seconds OPERATOR(pg_catalog.<) page.reach
         THEN page.clock OPERATOR(pg_catalog.-)
              pg_catalog.make_interval(secs => q.retention_seconds)
    END AS all_cutoff,
    CASE WHEN q.retention_enabled
          AND q.completed_retention_seconds OPERATOR(pg_catalog.>) 0
          AND q.completed_retention_seconds OPERATOR(pg_catalog.<) page.reach
         THEN page.clock OPERATOR(pg_catalog.-)
              pg_catalog.make_interval(secs => q.completed_retention_seconds)
    END AS completed_cutoff,
    CASE WHEN q.id IS NOT NULL
          AND GREATEST(q.dedup_window_seconds, q.completed_retention_seconds, 900)
              OPERATOR(pg_catalog.<) page.reach
         THEN page.clock OPERATOR(pg_catalog.-) pg_catalog.make_interval(secs =>
              GREATEST(q.dedup_window_seconds, q.completed_retention_seconds, 900))
    END AS txns_cutoff,
    CASE WHEN q.max_wait_time_seconds OPERATOR(pg_catalog.>) 0
          AND q.max_wait_time_seconds OPERATOR(pg_catalog.<) page.reach
         THEN page.clock OPERATOR(pg_catalog.-)
              pg_catalog.make_interval(secs => q.max_wait_time_seconds)
    END AS max_wait_cutoff
