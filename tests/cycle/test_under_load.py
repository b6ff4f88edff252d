"""B13, B14, B61, B91: beside loaders, beside DDL, with absurd ranges, with crowds of partitions."""

import threading
import time

import psycopg2
import pytest

from cycle import support
from pg import bulk, qret

LOADERS = 8


class Load:
    """Threads that take a partition's row lock and write, as pushers do, until told to stop."""

    def __init__(self, db, partition_ids):
        self.over = threading.Event()
        self.errors, self.pushes = [], 0
        self.threads = [
            threading.Thread(target=self._run, args=(db.connect(autocommit=False), partition_ids))
            for _ in range(LOADERS)
        ]

    def _run(self, connection, ids):
        while not self.over.is_set():
            pid = ids[self.pushes % len(ids)]
            try:
                with connection.cursor() as cursor:
                    cursor.execute(
                        "SELECT last_offset FROM queen.log_partitions WHERE id = %s FOR UPDATE",
                        (pid,),
                    )
                    cursor.execute(
                        "UPDATE queen.log_partitions SET last_offset = last_offset + 1,"
                        " last_write_at = now() WHERE id = %s",
                        (pid,),
                    )
                connection.commit()
                self.pushes += 1
            except psycopg2.Error as error:
                self.errors.append(error)
                connection.rollback()

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *exc):
        self.over.set()
        for thread in self.threads:
            thread.join()


def invalid_indexes(db):
    return db.sql("SELECT indexrelid::regclass::text FROM pg_index WHERE NOT indisvalid")


def test_install_under_load(cluster):
    """B13: install and install again while eight loaders write; no error on either side."""
    db = cluster.create_database(("broker",))
    ids = bulk.partitions(db, bulk.queue(db), 20)
    with qret.Context(db.dsn) as context, Load(db, ids) as load:
        assert support.eventually(lambda: load.pushes > 100)
        for _ in range(3):
            context.install("log")
        assert context.schema_version("log") > 0
        pushes = load.pushes
        assert support.eventually(lambda: load.pushes > pushes + 100)
    assert load.errors == []
    assert invalid_indexes(db) == []
    db.drop()


def test_install_waits_out_a_short_lock(cluster):
    """A loader that holds its lock for a while delays the install and is not disturbed."""
    db = cluster.create_database(("broker",))
    bulk.partitions(db, bulk.queue(db), 1)
    holder = db.connect(autocommit=False)
    with holder.cursor() as cursor:
        cursor.execute("LOCK TABLE queen.log_partitions, queen_streams.state IN ROW EXCLUSIVE MODE")
    release = threading.Timer(1.0, holder.rollback)
    release.start()
    with qret.Context(db.dsn) as context:
        context.install("log")
    release.join()
    assert invalid_indexes(db) == []
    db.drop()


def test_alter_table_during_a_drain(db):
    """B14: no lock on a relation outlives a step."""
    bulk.backlog(db, 100, 200)
    done = 0
    with qret.Context(db.dsn, batch_size=1) as context:
        codes = []
        runner = threading.Thread(target=lambda: codes.append(context.try_cycle()))
        runner.start()
        session = db.connect()
        with session.cursor() as cursor:
            cursor.execute("SET lock_timeout = '2s'")
            for number in range(20):
                try:
                    cursor.execute(f"ALTER TABLE queen.log_partitions ADD COLUMN x{number} int")
                    done += 1
                except psycopg2.errors.LockNotAvailable:
                    pass
                time.sleep(0.02)
        still_draining = runner.is_alive()
        context.stop()
        runner.join()
        assert still_draining
        assert done >= 19
        assert codes[0][0] in (qret.STOPPED, qret.PARTIAL), context.message
        assert codes[0][1]["segments_deleted"] > 0


def test_segment_wider_than_an_integer(db):
    """B61: three thousand million offsets in one segment; deleted, the audit saturated."""
    queue_id = bulk.queue(db, retention_enabled=True, retention_seconds=60)
    ids = bulk.partitions(db, queue_id, 1)
    wide = 3_000_000_000
    db.sql(
        "INSERT INTO queen.log_segments (partition_id, base_offset, end_offset, created_at, blob)"
        " VALUES (%s, 0, %s, now() - interval '1 hour', '')",
        ids[0],
        wide - 1,
    )
    db.sql("UPDATE queen.log_partitions SET last_offset = %s", wide - 1)
    with qret.Context(db.dsn) as context:
        report = context.cycle()
    assert (report["segments_deleted"], report["messages_deleted"]) == (1, wide)
    assert db.one("SELECT log_start FROM queen.log_partitions") == wide
    assert db.one("SELECT messages_deleted FROM queen.retention_history") == 2_147_483_647


def test_head_dated_in_the_future_holds_what_follows(db):
    """L6: never a hole; said in the log, not hidden."""
    _, ids = bulk.backlog(db, 1, 3)
    db.sql(
        "UPDATE queen.log_segments SET created_at = now() + interval '1 day'"
        " WHERE base_offset = 0"
    )
    with qret.Context(db.dsn) as context:
        assert context.cycle()["segments_deleted"] == 0
    assert bulk.count(db) == 3
    assert db.one("SELECT log_start FROM queen.log_partitions WHERE id = %s", ids[0]) == 0


@pytest.mark.slow
def test_crowd_of_empty_partitions(db):
    """B91: 50,000 of them go in bounded transactions that hold few locks."""
    bulk.partitions(db, bulk.queue(db), 50_000, 40 * support.DAY)
    support.spy_on_deletes(db, "log_partitions")
    with qret.Context(db.dsn, batch_size=1000) as context:
        assert context.drain(qret.PHASE_PARTITION_CLEANUP) == 50_000
    assert bulk.count(db, "log_partitions") == 0
    seen = support.deletes(db, "log_partitions")
    per_transaction = {}
    for xid, rows, _, _, locks in seen:
        per_transaction[xid] = per_transaction.get(xid, 0) + rows
        assert locks < 100
    assert max(per_transaction.values()) <= 1000
    assert db.sql(
        "SELECT retention_type, count(*) FROM queen.retention_history GROUP BY 1"
    ) == [("__partition_deleted__", 50_000)]
