"""Small worlds for cycles that are to be disturbed, and the truth about them afterwards."""

import os

from cycle import support
from pg import bulk, qret

SEGMENTS = 4
OLD_METRIC = "INSERT INTO queen.system_metrics (\"timestamp\") VALUES (now() - interval '400 days')"

OLD_EVENT = """
INSERT INTO outbox.event (name, payload, recorded_at)
VALUES ('e', '{}', now() - interval '400 days')
"""

LAST = "ffffffff-ffff-ffff-ffff-ffffffffffff"


def fill(db, partitions=1, segments=SEGMENTS):
    """Work for phases 1, 2 and 4: old segments with their sidecar, and an empty partition."""
    queue_id, ids = bulk.backlog(db, partitions, segments, age_seconds=2 * support.HOUR)
    add_empty(db)
    return queue_id, ids


def add_empty(db):
    """An empty partition that the clean-up takes; it comes last in every list."""
    db.sql(
        "INSERT INTO queen.log_partitions (id, queue_id, name, created_at, last_write_at)"
        " SELECT %s, id, 'empty', now() - interval '40 days', now() - interval '40 days'"
        " FROM queen.queues WHERE name = 'queue' ON CONFLICT DO NOTHING",
        LAST,
    )


def refill(db, ids, segments=SEGMENTS):
    """The same work again, on the partitions that are there."""
    bulk.segments(db, ids, segments, 2 * support.HOUR)
    add_empty(db)


def audited(db):
    """Messages deleted, as the audit rows have them."""
    return db.one("SELECT coalesce(sum(messages_deleted), 0)::bigint FROM queen.retention_history")


def dropped(db):
    """Partitions deleted, as the audit rows have them."""
    return db.one(
        "SELECT count(*) FROM queen.retention_history"
        " WHERE retention_type = '__partition_deleted__'"
    )


def descriptors():
    """How many descriptors this process has open."""
    return len(os.listdir("/proc/self/fd"))


def heal(context, seconds=30):
    """The next cycle, as soon as the gate is free: its report."""
    reports = []

    def swept():
        code, report = context.try_cycle()
        if code != qret.BUSY:
            reports.append((code, report))
        return bool(reports)

    assert support.eventually(swept, seconds), "the gate was not free in time"
    code, report = reports[0]
    assert code == qret.DONE, (code, context.message)
    return report
