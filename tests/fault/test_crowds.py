"""B12, B38 to B42, B47, B66, B81, B83, B84: held locks, several instances, things that go away."""

import threading
import time

import pytest

from cycle import support
from fault import worlds
from pg import bulk, qret

LIMITS = {"lock_timeout_ms": 200, "late_lock_ms": 50}


def deadlocks(db):
    return db.one("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")


def crowd(count, work):
    """Runs work(number) in so many threads; the exceptions that came out."""
    failures = []

    def run(number):
        try:
            work(number)
        except Exception as error:  # pylint: disable=broad-except
            failures.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return failures


@pytest.mark.parametrize("step_version", ["1", "2"])
def test_instances_without_a_gate_never_deadlock(db, step_version):
    """B12, B40: four at once on one backlog: every row once, no 40P01, exact counts."""
    bulk.backlog(db, 30, 20)
    before = deadlocks(db)
    counted, codes = [], []

    def work(number):
        options = dict(LIMITS, gate="none", batch_size=5 + number, step_version=step_version)
        with qret.Context(db.dsn, **options) as context:
            for _ in range(20):
                code, report = context.try_cycle()
                codes.append((code, context.sqlstate))
                counted.append(report["segments_deleted"])
                if not bulk_left(db.dsn):
                    break

    assert crowd(4, work) == []
    with qret.Context(db.dsn, gate="none") as context:
        counted.append(context.cycle()["segments_deleted"])
    assert {code for code, _ in codes} <= {qret.DONE, qret.PARTIAL}
    assert "40P01" not in {state for _, state in codes}
    assert sum(counted) == 600 == worlds.audited(db)
    assert bulk.count(db) == 0
    assert deadlocks(db) == before


def bulk_left(dsn):
    import psycopg2

    connection = psycopg2.connect(dsn)
    with connection, connection.cursor() as cursor:
        cursor.execute("SELECT EXISTS (SELECT FROM queen.log_segments)")
        found = cursor.fetchone()[0]
    connection.close()
    return found


@pytest.mark.parametrize("gate", ["session", "lease"])
def test_gate_held_elsewhere_is_no_wait(db, gate):
    """B38: BUSY within a moment, on one connection, and nobody waits for a lock."""
    holder = db.connect()
    with holder.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(737001)")
    contexts = [qret.Context(db.dsn, gate=gate) for _ in range(5)]
    try:
        for context in contexts:
            context.try_cycle()  # connected
            started = time.monotonic()
            assert context.try_cycle()[0] == qret.BUSY
            assert time.monotonic() - started < 1
        assert db.one("SELECT count(*) FROM pg_locks WHERE NOT granted") == 0
        names = "application_name = 'libqretention' AND datname = current_database()"
        assert db.one(f"SELECT count(*) FROM pg_stat_activity WHERE {names}") == 5
    finally:
        for context in contexts:
            context.close()


def test_row_lock_held_for_long(db):
    """B39: one session waits at most, for lock_timeout_ms at most; everything else goes on."""
    _, ids = bulk.backlog(db, 6, 5)
    holder = db.connect(autocommit=False)
    with holder.cursor() as cursor:
        cursor.execute("SELECT FROM queen.log_partitions WHERE id = %s FOR UPDATE", (ids[2],))
    waiting, done = [], threading.Event()

    def watch():
        watcher = db.connect()
        while not done.is_set():
            with watcher.cursor() as cursor:
                cursor.execute(
                    "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
                    " AND datname = current_database()"
                )
                waiting.append(cursor.fetchone()[0])

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        with qret.Context(db.dsn, parallelism=2, batch_size=2, **LIMITS) as context:
            code, report = context.try_cycle()
            assert code == qret.PARTIAL and report["items_locked"] >= 1
            assert report["segments_deleted"] == 25
            assert report["elapsed_us"] < 5_000_000
            holder.rollback()
            rest = support.eventually(lambda: context.try_cycle()[0] == qret.DONE, 10)
            assert rest and bulk.count(db) == 0
    finally:
        done.set()
        thread.join()
    assert max(waiting) <= 1


def test_things_that_go_away_under_a_cycle(db):
    """B66: partitions and queues dropped between list and step: no error, the next ones run."""
    queue_id, ids = bulk.backlog(db, 40, 2)
    doomed = bulk.queue(db, "doomed", retention_enabled=True, retention_seconds=60)
    bulk.segments(db, bulk.partitions(db, doomed, 10, 3600, "d"), 2, 3600)
    with qret.Context(db.dsn, batch_size=1) as context:
        context.begin()
        while not context.report()["steps"]:
            if context.process() == qret.WAIT:
                context.wait()
        db.sql("DELETE FROM queen.log_partitions WHERE id = ANY (%s::uuid[])", ids[20:30])
        db.sql("DELETE FROM queen.queues WHERE name = 'doomed'")
        assert support.finish(context) == qret.DONE
    assert bulk.count(db) == 0
    assert db.one("SELECT count(*) FROM queen.log_partitions WHERE queue_id = %s", queue_id) == 30


def test_null_settings_and_types(db):
    """B47: NULL in an optional column is 'off', never 'all'; rows with NULLs go as others do."""
    bulk.backlog(db, 1, 3)
    nothing = bulk.queue(
        db,
        "nulls",
        retention_enabled=None,
        retention_seconds=None,
        completed_retention_seconds=None,
        max_wait_time_seconds=None,
    )
    bulk.segments(db, bulk.partitions(db, nothing, 2, 3600, "n"), 3, 7200)
    db.sql(
        "INSERT INTO queen.retention_history (partition_id, retention_type, executed_at)"
        " VALUES (NULL, NULL, now() - interval '400 days')"
    )
    with qret.Context(db.dsn) as context:
        report = context.cycle()
    assert report["segments_deleted"] == 3 and report["metrics_purged"] == 1
    assert bulk.count(db) == 6


def test_failover_after_a_graceful_stop(db):
    """B81: the other instance sweeps at its very next try."""
    bulk.backlog(db, 10, 5)
    support.slow_deletes(db, 0.01)
    with qret.Context(db.dsn, batch_size=1) as leader, qret.Context(db.dsn) as other:
        leader.begin()
        while leader.report()["steps"] < 3:
            if leader.process() == qret.WAIT:
                leader.wait()
        assert other.try_cycle()[0] == qret.BUSY
        leader.stop()
        assert support.finish(leader) == qret.STOPPED
        assert other.cycle()["segments_deleted"] > 0


LIMITED = {
    "statement": ({"statement_timeout_ms": 300}, "PERFORM pg_sleep(20)", "57014", 4),
    "lock": ({"lock_timeout_ms": 200, "step_version": "1"}, None, "55P03", 3),
}


@pytest.mark.parametrize("limit", LIMITED)
def test_each_limit_is_its_own(db, limit):
    """B83: statement and lock limits end what they are named for, and nothing else."""
    options, sleep, sqlstate, seconds = LIMITED[limit]
    _, ids = bulk.backlog(db, 3, 2)
    holder = db.connect(autocommit=False)
    if sleep:
        support.fail_deletes_of(db, ids[0], sleep)
    else:
        with holder.cursor() as cursor:
            cursor.execute("SELECT FROM queen.log_partitions WHERE id = %s FOR UPDATE", (ids[0],))
    with qret.Context(db.dsn, batch_size=2, **options) as context:
        started = time.monotonic()
        code, report = context.try_cycle()
        assert code == qret.PARTIAL and context.sqlstate == sqlstate
        assert report["segments_deleted"] == 4
        assert time.monotonic() - started < seconds


def test_cycle_limit(db):
    """B83: the cycle's budget ends it between batches, and what is left is told."""
    bulk.backlog(db, 10, 20)
    support.slow_deletes(db, 0.05)
    with qret.Context(db.dsn, cycle_budget_ms=300, batch_size=2) as context:
        code, report = context.try_cycle()
        assert code == qret.BUDGET and 0 < report["segments_deleted"] < 200
        assert report["elapsed_us"] < 2_000_000
    assert worlds.audited(db) == report["messages_deleted"]


def test_snapshot_held_elsewhere_is_no_hindrance(db):
    """B84: rows that vacuum cannot remove yet cost no step its way."""
    reader = db.connect(autocommit=False)
    with reader.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        cursor.execute("SELECT count(*) FROM queen.log_segments")
    _, ids = bulk.backlog(db, 2, 500)
    with qret.Context(db.dsn) as context:
        assert context.cycle()["segments_deleted"] == 1000
        first = context.cycle()["elapsed_us"]
        bulk.segments(db, ids, 5, 3600)
        assert context.cycle()["segments_deleted"] == 10
        assert context.cycle()["elapsed_us"] < 10 * first + 500_000


def test_prunes_side_by_side_with_writers(event_db):
    """B41, B42: four prunes and a writer: no deadlock, each event once, no writer held up."""
    event_db.sql(
        "INSERT INTO outbox.event (name, payload, recorded_at)"
        " SELECT 'e', '{}', now() - interval '200 days' FROM generate_series(1, 4000)"
    )
    event_db.sql(
        "INSERT INTO outbox.delivery"
        " (event_id, receiver_key, target, target_digest, status, succeeded_at)"
        " SELECT id, 'r' || (random() * 5)::int, 't', 'd', 'succeeded', now() FROM outbox.event"
    )
    before = deadlocks(event_db)
    counted, slowest = [], []
    done = threading.Event()

    def write():
        writer = event_db.connect()
        with writer.cursor() as cursor:
            while not done.is_set():
                started = time.monotonic()
                cursor.execute(
                    "INSERT INTO outbox.event (name, payload, recorded_at)"
                    " VALUES ('new', '{}', now()) RETURNING id"
                )
                cursor.execute(
                    "INSERT INTO outbox.delivery (event_id, receiver_key, target, target_digest)"
                    " VALUES (%s, 'r1', 't', 'd')",
                    cursor.fetchone(),
                )
                slowest.append(time.monotonic() - started)
                time.sleep(0.005)

    def prune(number):
        options = {"engines": "event", "gate": "none", "event_prune_interval_ms": 0}
        with qret.Context(event_db.dsn, event_batch_rows=50 + 37 * number, **options) as context:
            for _ in range(6):
                code, report = context.try_cycle()
                assert code in (qret.DONE, qret.PARTIAL), context.message
                counted.append(report["events_deleted"])

    writing = threading.Thread(target=write)
    writing.start()
    try:
        assert crowd(4, prune) == []
    finally:
        done.set()
        writing.join()
    assert sum(counted) == 4000
    assert event_db.one("SELECT count(*) FROM outbox.event WHERE name = 'e'") == 0
    assert event_db.one("SELECT count(*) FROM outbox.event WHERE name = 'new'") == len(slowest)
    assert deadlocks(event_db) == before
    assert sorted(slowest)[int(len(slowest) * 0.95)] < 1.0
