"""The race that remains: a push that found its partition just before the clean-up deleted it."""

import threading

import psycopg2
import pytest

from cycle import support
from pg import bulk, qret
from pg.broker import Broker

AGE = 40 * support.DAY


@pytest.fixture
def quiet(db):
    """(broker, queue id, partition id) of a partition silent for 40 days."""
    queue_id = bulk.queue(db)
    (pid,) = bulk.partitions(db, queue_id, 1, AGE)
    return Broker(db), queue_id, pid


def cleaned(db):
    with qret.Context(db.dsn) as context:
        return context.cycle()["partitions_deleted"]


def open_cleanup(db):
    """A clean-up step whose transaction stays open."""
    session = db.connect(autocommit=False)
    with session.cursor() as cursor:
        cursor.execute(
            "SELECT queen.log_partition_cleanup_step_v1(now() - interval '30 days', 100)"
        )
        assert cursor.fetchone()[0]["deleted"] == 1
    return session


def blocked(db):
    return db.one(
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        " AND datname = current_database()"
    )


def in_thread(function, *args):
    outcome = []

    def run():
        try:
            outcome.append(function(*args))
        except (LookupError, psycopg2.Error) as error:
            outcome.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, outcome


def test_push_after_the_cleanup_fails_loudly_and_its_retry_provisions(db, quiet):
    broker, queue_id, pid = quiet
    resolved = broker.partition(queue_id, "p1")
    assert resolved == pid
    assert cleaned(db) == 1
    with pytest.raises(LookupError):
        broker.push(resolved, 1)
    again = broker.partition(queue_id, "p1")
    assert again != pid
    assert broker.push(again, 1)[0] == 0
    assert bulk.count(db) == 1


def test_push_waiting_for_the_cleanup_fails_loudly(db, quiet):
    """Both transactions open: the push waits for the row, then finds it gone."""
    broker, queue_id, pid = quiet
    cleanup = open_cleanup(db)
    thread, outcome = in_thread(broker.push, pid, 1)
    assert support.eventually(lambda: blocked(db) == 1)
    cleanup.commit()
    thread.join()
    assert isinstance(outcome[0], LookupError)
    assert broker.push(broker.partition(queue_id, "p1"), 1)[0] == 0
    assert bulk.count(db) == bulk.count(db, "log_txns") == 1


def test_push_goes_through_when_the_cleanup_rolls_back(db, quiet):
    broker, _, pid = quiet
    cleanup = open_cleanup(db)
    thread, outcome = in_thread(broker.push, pid, 1)
    assert support.eventually(lambda: blocked(db) == 1)
    cleanup.rollback()
    thread.join()
    assert outcome[0][0] == 0
    assert cleaned(db) == 0


def test_segment_of_a_deleted_partition_trips_its_foreign_key(db, quiet):
    """A pusher that takes no lock first is stopped by the key."""
    _, _, pid = quiet
    cleanup = open_cleanup(db)
    insert = (
        "INSERT INTO queen.log_segments (partition_id, base_offset, end_offset, created_at, blob)"
        " VALUES (%s, 0, 0, now(), '')"
    )
    thread, outcome = in_thread(db.sql, insert, pid)
    watcher = db.connect()
    with watcher.cursor() as cursor:

        def waits():
            cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
            return cursor.fetchone()[0] > 0

        assert support.eventually(waits)
    cleanup.commit()
    thread.join()
    assert isinstance(outcome[0], psycopg2.errors.ForeignKeyViolation)
    assert bulk.count(db) == 0


def test_cleanup_passes_by_a_partition_that_is_being_pushed_to(db, quiet):
    """An open push holds the row: the clean-up skips it at once and loses nothing."""
    broker, _, pid = quiet
    broker.begin()
    broker.push(pid, 1)
    assert cleaned(db) == 0
    broker.commit()
    assert cleaned(db) == 0
    assert bulk.count(db) == 1


def test_cleanup_passes_by_a_consumer_at_work(db, quiet):
    """A locked consumer row spares its partition: a pop or an ack is at work there."""
    broker, _, pid = quiet
    bulk.consumer(db, [pid], age_seconds=AGE)
    broker.begin()
    broker.sql("SELECT 1 FROM {q}.log_consumers WHERE partition_id = %s FOR UPDATE", pid)
    assert cleaned(db) == 0
    broker.rollback()
    assert cleaned(db) == 1


def test_many_pushes_beside_the_cleanup_lose_nothing(db):
    """Pushers to silent partitions beside one clean-up after another: each write is found again."""
    queue_id = bulk.queue(db)
    bulk.partitions(db, queue_id, 40, AGE)
    stored, errors = [], []

    def pusher(number):
        broker = Broker(db)
        for n in range(number, 41, 4):
            while True:
                pid = broker.partition(queue_id, f"p{n}")
                try:
                    broker.push(pid, 1)
                    stored.append(pid)
                    break
                except (LookupError, psycopg2.errors.ForeignKeyViolation) as error:
                    errors.append(error)

    pushers = [threading.Thread(target=pusher, args=(n,)) for n in range(1, 5)]
    for thread in pushers:
        thread.start()
    while any(thread.is_alive() for thread in pushers):
        with qret.Context(db.dsn, batch_size=3) as context:
            context.try_cycle()
    for thread in pushers:
        thread.join()
    assert len(stored) == 40
    assert bulk.count(db) == 40
    found = {row[0] for row in db.sql("SELECT partition_id::text FROM queen.log_segments")}
    assert found == set(stored)
