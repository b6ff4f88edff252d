"""Logs and outboxes of a given shape, put in set by set."""

from pg import bulk

HOUR = 3600


def queue(db, name="queue", **policy):
    return bulk.queue(db, name, **dict({"retention_enabled": True, "retention_seconds": HOUR}, **policy))


def backlog(db, partitions, segments, blob_bytes, messages=5):
    """One queue of partitions, each with so many stale segments of `messages` messages, no sidecar.

    Written as pushes arrive: a segment of every partition, then the next, so a page of the table
    holds rows of several partitions.
    """
    queue_id = queue(db)
    ids = bulk.partitions(db, queue_id, partitions, age_seconds=3 * HOUR)
    db.sql(
        "INSERT INTO queen.log_segments (partition_id, base_offset, end_offset, created_at, blob)"
        " SELECT p.id, n * %s, (n + 1) * %s - 1,"
        " now() - interval '2 hours' + make_interval(secs => n * 0.001),"
        " convert_to(repeat('x', %s), 'UTF8')"
        " FROM generate_series(0, %s - 1) AS n, queen.log_partitions AS p"
        " WHERE p.queue_id = %s ORDER BY n, p.id",
        messages,
        messages,
        blob_bytes,
        segments,
        queue_id,
    )
    db.sql(
        "UPDATE queen.log_partitions SET last_offset = %s WHERE queue_id = %s",
        segments * messages - 1,
        queue_id,
    )
    return ids


def crowd(db, partitions, age_seconds, queues=100, segments=1, txns=True, known=True):
    """Partitions spread over queues, each with so many small segments of that age.

    known: their floors are what a look at them would have written.
    """
    for number in range(queues):
        queue(db, f"queue {number}", retention_seconds=12 * HOUR, dedup_window_seconds=12 * HOUR)
    db.sql(
        "INSERT INTO queen.log_partitions (queue_id, name, last_offset, created_at, last_write_at)"
        " SELECT q.id, 'p' || n, %s - 1, now() - make_interval(secs => %s), now()"
        " FROM generate_series(1, %s) AS n JOIN (SELECT id, row_number() OVER (ORDER BY id) AS k"
        " FROM queen.queues) AS q ON q.k = n %% %s + 1",
        segments,
        age_seconds,
        partitions,
        queues,
    )
    db.sql(
        "INSERT INTO queen.log_segments (partition_id, base_offset, end_offset, created_at, blob)"
        " SELECT p.id, n, n, now() - make_interval(secs => %s), 'x'"
        " FROM queen.log_partitions AS p, generate_series(0, %s - 1) AS n",
        age_seconds,
        segments,
    )
    if txns:
        db.sql(
            "INSERT INTO queen.log_txns (partition_id, base_offset, end_offset, created_at, hashes)"
            " SELECT partition_id, base_offset, end_offset, created_at,"
            " decode(md5(base_offset::text), 'hex') FROM queen.log_segments"
        )
    if known:
        db.sql(
            "UPDATE queen.retention_floors AS f SET look_xid = NULL,"
            " segments_floor = s.created_at, txns_floor = CASE WHEN %s THEN s.created_at ELSE now() END"
            " FROM queen.log_segments AS s WHERE s.partition_id = f.partition_id AND s.base_offset = 0",
            txns,
        )


def outbox(db, events, deliveries, age_seconds, status="succeeded", **columns):
    """Events of that age, each with so many deliveries; further columns of the event as keywords."""
    names = "".join(", " + name for name in columns)
    marks = ", %s" * len(columns)
    db.sql(
        "WITH put AS (INSERT INTO outbox.event (name, payload, recorded_at"
        + names
        + ") SELECT 'event', '{\"order\": 1}', now() - make_interval(secs => %s + n)"
        + marks
        + " FROM generate_series(1, %s) AS n RETURNING id)"
        " INSERT INTO outbox.delivery"
        " (event_id, receiver_key, target, target_digest, status, succeeded_at)"
        " SELECT put.id, 'receiver ' || d, '', md5(d::text), %s,"
        " CASE WHEN %s = 'succeeded' THEN now() END"
        " FROM put, generate_series(1, %s) AS d ORDER BY put.id, d",
        age_seconds,
        *columns.values(),
        events,
        status,
        status,
        deliveries,
    )
