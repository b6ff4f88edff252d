"""Much data at once, set by set: backlogs and crowds of partitions for tests of scale."""

import uuid


def queue(db, name="queue", tenant=None, **policy):
    """A queue with the columns given; returns its id."""
    values = dict(policy, name=name, id=str(uuid.uuid4()))
    if tenant is not None:
        values["tenant_id"] = str(tenant)
    columns, marks = ", ".join(values), ", ".join(["%s"] * len(values))
    return db.one(
        f"INSERT INTO queen.queues ({columns}) VALUES ({marks}) RETURNING id::text",
        *values.values(),
    )


def partitions(db, queue_id, count, age_seconds=0, prefix="p"):
    """count partitions, created and last written age_seconds ago; their ids in ascending order."""
    rows = db.sql(
        "INSERT INTO queen.log_partitions (queue_id, name, created_at, last_write_at)"
        " SELECT %s, %s || n, now() - make_interval(secs => %s), now() - make_interval(secs => %s)"
        " FROM generate_series(1, %s) AS n RETURNING id::text",
        queue_id,
        prefix,
        age_seconds,
        age_seconds,
        count,
    )
    return sorted(row[0] for row in rows)


def segments(db, partition_ids, count, age_seconds=0, messages=1, blob_bytes=10, txns=True):
    """Appends count segments of so many messages to each partition, with sidecar rows."""
    db.sql(
        "INSERT INTO queen.log_segments (partition_id, base_offset, end_offset, created_at, blob)"
        " SELECT p.id, p.last_offset + 1 + n * %s, p.last_offset + (n + 1) * %s,"
        " now() - make_interval(secs => %s), convert_to(repeat('x', %s), 'UTF8')"
        " FROM queen.log_partitions AS p, generate_series(0, %s - 1) AS n"
        " WHERE p.id = ANY (%s::uuid[])",
        messages,
        messages,
        age_seconds,
        blob_bytes,
        count,
        list(partition_ids),
    )
    if txns:
        db.sql(
            "INSERT INTO queen.log_txns (partition_id, base_offset, end_offset, created_at, hashes)"
            " SELECT s.partition_id, s.base_offset, s.end_offset, s.created_at,"
            " decode(repeat(md5(s.base_offset::text), %s), 'hex')"
            " FROM queen.log_segments AS s JOIN queen.log_partitions AS p ON p.id = s.partition_id"
            " WHERE p.id = ANY (%s::uuid[]) AND s.base_offset > p.last_offset",
            messages,
            list(partition_ids),
        )
    db.sql(
        "UPDATE queen.log_partitions SET last_offset = last_offset + %s"
        " WHERE id = ANY (%s::uuid[])",
        count * messages,
        list(partition_ids),
    )


def consumer(db, partition_ids, group="__QUEUE_MODE__", committed=-1, age_seconds=0):
    db.sql(
        "INSERT INTO queen.log_consumers (partition_id, consumer_group, committed, created_at)"
        " SELECT id, %s, %s, now() - make_interval(secs => %s) FROM unnest(%s::uuid[]) AS id",
        group,
        committed,
        age_seconds,
        list(partition_ids),
    )


def backlog(db, partition_count, segment_count, age_seconds=1800, blob_bytes=10, **policy):
    """(queue id, partition ids): a queue that keeps a minute, and partitions with old segments.

    Old enough for that minute, too young for the sidecar's default window of an hour.
    """
    policy = policy or {"retention_enabled": True, "retention_seconds": 60}
    queue_id = queue(db, **policy)
    ids = partitions(db, queue_id, partition_count, age_seconds)
    segments(db, ids, segment_count, age_seconds, blob_bytes=blob_bytes)
    return queue_id, ids


def count(db, table="log_segments"):
    return db.one(f"SELECT count(*) FROM queen.{table}")
