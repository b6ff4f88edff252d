"""B23, B84: what keeps deleted rows from being vacuumed is told."""

import contextlib
import time

from cycle import support
from pg import bulk, qret
from pg.cluster import Cluster

ROWS = 12_000


def delete_rows(db):
    """Dead rows, by a session whose end reports them to the statistics."""
    bulk.backlog(db, 1, ROWS)
    with contextlib.closing(db.connect()) as session, session.cursor() as cursor:
        cursor.execute("DELETE FROM queen.log_segments")
    dead = "SELECT pg_stat_get_dead_tuples('queen.log_segments'::regclass)"
    assert support.eventually(lambda: db.one(dead) >= ROWS, 20)


def told(db):
    """The event's lines, and the samples, of one cycle of a new context."""
    lines, samples = [], {}
    with qret.Context(db.dsn, interval_ms=200) as context:
        context.on_log = lambda line: lines.append(line.text)
        context.on_metric = lambda sample: samples.__setitem__(sample.name, sample.value)
        context.cycle()
    return [line for line in lines if "event=vacuum_blocked" in line], samples


def test_B23_old_snapshot_over_dead_rows_is_told(db):
    holder = db.connect(autocommit=False)
    with holder.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        cursor.execute("SELECT count(*) FROM queen.queues")
    delete_rows(db)
    time.sleep(0.3)
    lines, samples = told(db)
    assert len(lines) == 1 and f"pid={holder.info.backend_pid}" in lines[0]
    assert samples["qretention_dead_rows"] >= ROWS
    assert samples["qretention_oldest_snapshot_seconds"] >= 0.3
    holder.rollback()
    lines, samples = told(db)
    assert lines == [] and samples["qretention_oldest_snapshot_seconds"] < 0.3


def test_B84_prepared_transaction_over_dead_rows_is_told():
    with Cluster({"max_prepared_transactions": "2"}) as cluster:
        db = cluster.create_database(("broker", "log"))
        db.sql("BEGIN; SELECT pg_current_xact_id(); PREPARE TRANSACTION 'forgotten'")
        delete_rows(db)
        time.sleep(0.3)
        lines, _ = told(db)
        assert len(lines) == 1 and "pid=" not in lines[0]
        db.sql("ROLLBACK PREPARED 'forgotten'")
        assert told(db)[0] == []
