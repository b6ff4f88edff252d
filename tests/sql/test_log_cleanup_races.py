"""The clean-up beside what brokers do, with both transactions open (L9)."""

import threading
import time

import psycopg2
import pytest

from pg.broker import Broker
from sql.log_support import DAY, Log, cut, source


@pytest.fixture
def log(db):
    return Log(db)


@pytest.fixture
def broker(db):
    made = Broker(db)
    yield made
    made.close()


STEPS = ["cleanup", "cleanup_v2"]


def empty(log, **columns):
    """An old, drained partition with a cursor at its end."""
    pid = log.partition(last_offset=9, log_start=10, txns_start=10, **columns)
    log.consumer(pid, committed=9)
    return pid


class Beside:
    """A call that may have to wait, on a thread and a connection of its own."""

    def __init__(self, call):
        self.value = None
        self.error = None
        self.thread = threading.Thread(target=self._run, args=(call,))
        self.thread.start()

    def _run(self, call):
        try:
            self.value = call()
        except (psycopg2.Error, LookupError) as error:
            self.error = error

    def result(self):
        self.thread.join(20)
        assert not self.thread.is_alive()
        return self.value


def wait_until_blocked(log, application="broker"):
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if log.one(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s"
            " AND wait_event_type = 'Lock' AND datname = current_database()",
            application,
        ):
            return
        time.sleep(0.01)
    raise AssertionError("nobody waits")


@pytest.mark.parametrize("step", STEPS)
def test_L9_a_partition_that_is_pushed_to_is_spared(log, broker, step):
    pid, other = empty(log), empty(log)
    with broker.transaction():
        broker.push(pid)
        assert getattr(log, step)()["deleted"] == 1
        assert not log.exists(other)
    assert log.exists(pid)
    assert getattr(log, step)()["deleted"] == 0
    assert log.bases(pid) == [10]


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("work", ["pop", "ack", "dead_letter", "first pop"])
def test_L9_a_partition_whose_consumer_is_at_work_is_spared(log, broker, step, work):
    """The others of the batch go; the spared one goes once its broker is through without a trace."""
    pids = [empty(log) for _ in range(3)]
    busy = pids[1]
    with pytest.raises(ZeroDivisionError):
        with broker.transaction():
            if work == "pop":
                broker.pop(busy, "group")
            elif work == "first pop":
                broker.pop(busy, "newcomer")
            elif work == "ack":
                broker.ack(busy, "group")  # no lease: it locks nothing
                broker.seek(busy, "group", 9)
            else:
                broker.dead_letter(busy, "group", 9)
            answer = getattr(log, step)()
            assert answer["deleted"] == 2
            assert log.alive() == [busy]
            raise ZeroDivisionError
    assert getattr(log, step)()["deleted"] == 1


SECOND_LOOK = " AND \"queen\".log_partition_dead_v1(candidate.id, p_cutoff)"
PAUSE = """    deleted := 0;
    PERFORM pg_advisory_lock(1);
    PERFORM pg_advisory_unlock(1);
"""


def with_pause(log, without=""):
    """Lets the deleting half wait for an advisory lock first, and takes a clause out of it."""
    text = source("cleanup/retention_cleanup_delete_v1.sql")
    if without:
        text = cut(text, without)
    assert text.count("    deleted := 0;\n") == 1
    log.sql(text.replace("    deleted := 0;\n", PAUSE))


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("without, deleted", [("", 0), (SECOND_LOOK, 1)])
def test_L9_a_committed_dead_letter_is_seen_by_the_second_look(log, broker, step, without, deleted):
    """It commits after the candidate scan's snapshot and before the consumer rows are locked."""
    pid = empty(log)
    with_pause(log, without)
    gate = Log(log.db)
    gate.sql("SELECT pg_advisory_lock(1)")
    cleaner = Log(log.db, application_name="cleaner")
    running = Beside(getattr(cleaner, step))
    wait_until_blocked(log, "cleaner")
    broker.dead_letter(pid, "group", 9)
    gate.sql("SELECT pg_advisory_unlock(1)")
    assert running.result()["deleted"] == deleted
    assert running.error is None
    assert log.exists(pid) is not bool(deleted)


HELD_CONSUMERS = "candidate.free AND "


def test_L9_without_the_look_at_held_consumers_it_would_wait_for_them(log, broker):
    pid = empty(log)
    log.sql(cut(source("cleanup/retention_cleanup_delete_v1.sql"), HELD_CONSUMERS))
    log.sql("SET lock_timeout = 200")
    with broker.transaction():
        broker.seek(pid, "group", 9)
        with pytest.raises(psycopg2.errors.LockNotAvailable):
            log.cleanup()


def test_L9_a_batch_that_was_spared_whole_does_not_loop(log, broker):
    pids = log.partitions(3)
    for pid in pids:
        log.consumer(pid, committed=-1)
    with broker.transaction():
        for pid in pids:
            broker.seek(pid, "group", -1)
        assert log.cleanup(rows=2) == {"deleted": 0, "done": True}
        assert log.cleanup_round(rows=2) == 0
    assert log.cleanup_round(rows=2) == 3


def test_L9_a_locked_partition_takes_no_place_in_a_batch(log):
    pids = log.partitions(3)
    other = Log(log.db)
    other.connection.autocommit = False
    other.sql("SELECT 1 FROM {q}.log_partitions WHERE id = %s FOR UPDATE", pids[0])
    assert log.cleanup(rows=1) == {"deleted": 1, "done": False}
    assert log.alive() == [pids[0], pids[2]]
    other.connection.rollback()


def test_L9_B44_one_locked_of_a_thousand_is_spared_and_said_so(log, broker):
    """The others go at once and nobody waits; the locked one goes in a later round."""
    pids = log.partitions(1000)
    busy = pids[499]
    log.sql("SET lock_timeout = 100")
    with broker.transaction():
        broker.sql("SELECT 1 FROM {q}.log_partitions WHERE id = %s FOR UPDATE", busy)
        answer = log.cleanup_v2()
        assert (answer["deleted"], answer["spared"], answer["done"]) == (999, 1, True)
        assert log.alive() == [busy]
        answer = log.cleanup_v2()
        assert (answer["deleted"], answer["spared"]) == (0, 1)
    answer = log.cleanup_v2()
    assert (answer["deleted"], answer["spared"]) == (1, 0)


def test_L9_a_held_consumer_counts_as_spared(log, broker):
    pids = [empty(log) for _ in range(3)]
    with broker.transaction():
        broker.seek(pids[1], "group", 9)
        answer = log.cleanup_v2()
    assert (answer["deleted"], answer["spared"]) == (2, 1)


def test_L9_locked_partitions_in_front_leave_a_batch_to_those_behind(log, broker):
    pids = log.partitions(7)
    with broker.transaction():
        for pid in pids[:4]:
            broker.sql("SELECT 1 FROM {q}.log_partitions WHERE id = %s FOR UPDATE", pid)
        answer = log.cleanup_v2(rows=2)
        assert (answer["deleted"], answer["spared"], answer["last"]) == (2, 4, pids[5])
        assert log.cleanup(rows=2) == {"deleted": 1, "done": True}
    assert log.alive() == pids[:4]


@pytest.mark.parametrize("step", STEPS)
def test_L9_a_push_that_came_too_late_fails_loudly_and_its_retry_provisions_anew(
    log, broker, step
):
    pid = empty(log)
    queue = log.one("SELECT queue_id::text FROM {q}.log_partitions WHERE id = %s", pid)
    name = log.one("SELECT name FROM {q}.log_partitions WHERE id = %s", pid)
    assert broker.partition(queue, name) == pid  # resolved before the clean-up
    log.connection.autocommit = False
    assert getattr(log, step)()["deleted"] == 1
    pushing = Beside(lambda: broker.push(pid, ["message"]))
    wait_until_blocked(Log(log.db))
    log.connection.commit()
    log.connection.autocommit = True
    pushing.result()
    assert isinstance(pushing.error, LookupError)
    again = broker.partition(queue, name)
    assert again != pid
    assert broker.push(again, ["message"])[:2] == (0, 0)
    assert log.bases(again) == [0]
    assert log.orphans() == 0


def test_L9_an_insert_that_came_too_late_trips_its_foreign_key(log, broker):
    pid = empty(log)
    log.connection.autocommit = False
    assert log.cleanup()["deleted"] == 1
    inserting = Beside(
        lambda: broker.sql(
            "INSERT INTO {q}.log_segments (partition_id, base_offset, end_offset, created_at)"
            " VALUES (%s, 10, 19, now())",
            pid,
        )
    )
    wait_until_blocked(Log(log.db))
    log.connection.commit()
    inserting.result()
    assert isinstance(inserting.error, psycopg2.errors.ForeignKeyViolation)


def test_L9_a_pushers_wait_ends_with_its_partition_where_the_cleanup_rolls_back(log, broker):
    pid = empty(log)
    log.connection.autocommit = False
    assert log.cleanup()["deleted"] == 1
    pushing = Beside(lambda: broker.push(pid, ["message"]))
    wait_until_blocked(Log(log.db))
    log.connection.rollback()
    assert pushing.result()[:2] == (10, 10)
    assert log.exists(pid)


def test_L9_cleanups_side_by_side_delete_each_partition_once(log):
    pids = log.partitions(300)
    for pid in pids:
        log.consumer(pid, committed=-1)

    def round_of(worker):
        return lambda: sum(worker.cleanup_round(rows=7) for _ in range(3))

    running = [Beside(round_of(Log(log.db))) for _ in range(4)]
    total = sum(beside.result() for beside in running)
    assert [beside.error for beside in running] == [None] * 4
    assert total == 300 == log.one("SELECT count(*) FROM {q}.retention_history")
    assert log.alive() == []


def test_L9_multi_partition_pushes_and_cleanups_do_not_deadlock(log, broker):
    pids = log.partitions(40, last_offset=-1)
    stop = time.monotonic() + 2

    def push():
        pushed = 0
        while time.monotonic() < stop:
            try:
                pushed += len(broker.push_multi([(pid, 1) for pid in reversed(pids[::2])]))
            except LookupError:
                return pushed
        return pushed

    cleaner = Log(log.db)
    pushing = Beside(push)
    deleted = 0
    while time.monotonic() < stop:
        deleted += cleaner.cleanup_v2(rows=5)["deleted"]
    pushed = pushing.result()
    assert pushing.error is None
    # Every write that was answered is there, or its partition was empty when it went.
    assert pushed == log.one("SELECT count(*) FROM {q}.log_segments")
    assert deleted == 40 - len(log.alive())


def test_L5_a_push_beside_a_step_keeps_its_segment(log, broker):
    pid = log.partition()
    log.segments(pid, [50 * DAY] * 3)
    log.connection.autocommit = False
    assert log.retain(pid, stale=DAY)["deleted"] == 3
    pushing = Beside(lambda: broker.push(pid, 4))
    wait_until_blocked(Log(log.db))
    log.connection.commit()
    assert pushing.result()[:2] == (30, 33)
    assert log.bases(pid) == [30]
    assert log.watermark(pid) == 30


def test_L1_two_steps_on_one_partition_count_each_segment_once(log):
    pid = log.partition()
    log.segments(pid, [50 * DAY] * 10)
    log.connection.autocommit = False
    assert log.retain(pid, stale=DAY, rows=4)["deleted"] == 4
    second = Log(log.db, application_name="second")
    waiting = Beside(lambda: second.retain(pid, stale=DAY, rows=4))
    wait_until_blocked(Log(log.db), "second")
    log.connection.commit()
    assert waiting.result() == {"deleted": 4, "new_log_start": 80, "done": False}
    assert sorted(log.history(pid)) == [("retention", 40), ("retention", 40)]
