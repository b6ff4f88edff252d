"""B34, B51: a server that is stopped, killed, restarted or frozen; the host says little."""

import os
import signal
import threading
import time

import pytest

from cycle import support
from fault import servers, worlds
from pg import bulk, qret
from pg.cluster import Cluster

LIMITS = {
    "connect_timeout_ms": 500,
    "statement_timeout_ms": 500,
    "lock_timeout_ms": 200,
    "idle_limit_ms": 1000,
    "interval_ms": 100,
}
MARGIN = 3.0


@pytest.fixture(scope="module")
def own():
    """A server that may be treated badly."""
    with Cluster() as server:
        yield server


@pytest.fixture
def own_db(own):
    database = own.create_database(("broker", "log"))
    yield database
    if own.process is None:
        own.start()
    database.close()
    own.close_connections()
    database.drop()


def threads():
    return len(os.listdir("/proc/self/task"))


def test_outage_is_survived_quietly(own, own_db):
    """Two hundred cycles without a server: one line, nothing grows; then it resumes alone."""
    worlds.fill(own_db)
    with qret.Context(own_db.dsn, **LIMITS) as context:
        context.cycle()
        own_db.close()
        own.kill()
        context.logs.clear()
        before = worlds.descriptors(), threads()
        for number in range(1, 201):
            code, report = context.try_cycle()
            assert code == qret.ERR_CONNECTION and context.retryable
            assert report["consecutive_failures"] == number
            assert report["last_success_us"] > 0
        assert worlds.descriptors() <= before[0] and threads() == before[1]
        loud = [line for line in context.logs if line.level <= qret.LOG_INFO]
        assert len(loud) <= 2, loud
        assert len(context.events("cycle_error")) == 1
        own.start()
        report = context.cycle()
        assert report["consecutive_failures"] == 0


def test_outage_backs_off(own_db):
    """The pause between two tries grows, with jitter; a host that waits as told tries seldom."""
    port = servers.closed_port()
    with qret.Context(servers.conninfo(port), **LIMITS) as context:
        pauses = []
        for _ in range(12):
            context.try_cycle()
            pauses.append((context.next_cycle_us() - context.lib.qret_now_us()) / 1e6)
    assert 0.1 < pauses[0] <= 0.6
    assert pauses[-1] > 20 and pauses[-1] < 70
    for number, pause in enumerate(
        pauses
    ):  # doubling from half a second, jittered down to its half
        most = min(0.5 * 2**number, 64)
        assert most * 0.45 < pause < most + 0.2


def test_outage_fleet_does_not_return_at_one_instant():
    port = servers.closed_port()
    pauses = set()
    for _ in range(10):
        with qret.Context(servers.conninfo(port), **LIMITS) as context:
            for _ in range(5):
                context.try_cycle()
            pauses.add((context.next_cycle_us() - context.lib.qret_now_us()) // 50_000)
    assert len(pauses) >= 4


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGQUIT, signal.SIGINT])
def test_server_ended_and_restarted_while_a_cycle_runs(own, own_db, how):
    """Immediate, crash and fast: the call returns once, and the next cycle finishes the work."""
    bulk.backlog(own_db, 10, 8)
    support.slow_deletes(own_db, 0.02)
    own_db.sql("CHECKPOINT")
    with qret.Context(own_db.dsn, batch_size=2, **LIMITS) as context:
        before = worlds.descriptors()
        context.begin()
        while context.report()["segments_deleted"] < 20:
            if context.process() == qret.WAIT:
                context.wait()
        own_db.close()
        own.restart(how)
        code = support.finish(context)
        assert code == qret.ERR_CONNECTION and context.retryable
        counted = context.report()["messages_deleted"]
        counted += worlds.heal(context)["messages_deleted"]
        assert bulk.count(own_db) == 0
        # synchronous_commit is off for steps: a crash may repeat deletes, it never counts rows that
        # are there. What was deleted for good is what the audit rows say.
        assert worlds.audited(own_db) == 80
        if how == signal.SIGINT:
            assert counted <= 80
        own_db.close()
        assert worlds.descriptors() <= before + 1


def frozen(cluster):
    """The postmaster and all its children."""
    pids = [cluster.process.pid]
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", encoding="ascii", errors="replace") as stat:
                    parent = int(stat.read().rpartition(")")[2].split()[1])
            except OSError:
                continue
            if parent == cluster.process.pid:
                pids.append(int(entry))
    return pids


@pytest.mark.parametrize("whom", ["postmaster", "everybody"])
def test_frozen_server(own, own_db, whom):
    """SIGSTOP: a new connection costs the connect limit, a running cycle the statement limit."""
    worlds.fill(own_db)
    with qret.Context(own_db.dsn, **LIMITS) as context, qret.Context(own_db.dsn, **LIMITS) as late:
        context.cycle()
        pids = frozen(own) if whom == "everybody" else [own.process.pid]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            for each in (late, context):
                started = time.monotonic()
                code, _ = each.try_cycle()
                took = time.monotonic() - started
                if whom == "postmaster" and each is context:
                    assert code == qret.DONE  # its backend is alive
                else:
                    assert code in (qret.ERR_TIMEOUT, qret.ERR_CONNECTION) and each.retryable
                assert took < 1.5 + MARGIN
            started = time.monotonic()
            late.close()  # abandons without waiting
            assert time.monotonic() - started < 1
        finally:
            for pid in pids:
                try:
                    os.kill(pid, signal.SIGCONT)
                except ProcessLookupError:
                    pass
        worlds.heal(context)
    assert support.eventually(lambda: not support.advisory_locks(own_db))


def test_backend_terminated_in_each_phase(own_db):
    """B69: pg_terminate_backend at many moments: one return each, class CONNECTION, 57P01 told."""
    _, ids = worlds.fill(own_db, partitions=2)
    killer = own_db.connect()
    ended = []
    with qret.Context(own_db.dsn, batch_size=1, **LIMITS) as context:
        for calls in range(1, 60, 3):
            worlds.refill(own_db, ids)
            context.begin()
            code = qret.MORE
            for _ in range(calls):
                code = context.process()
                if code not in (qret.MORE, qret.WAIT):
                    break
                if code == qret.WAIT:
                    context.wait()
            if code in (qret.MORE, qret.WAIT):
                with killer.cursor() as cursor:
                    cursor.execute(
                        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
                        " WHERE application_name = 'libqretention'"
                    )
                code = support.finish(context)
                ended.append((code, context.sqlstate))
            worlds.heal(context)
            assert context.call("cycle_process") == qret.ERR_STATE
    assert len(ended) >= 5
    assert {code for code, _ in ended} <= {qret.ERR_CONNECTION, qret.DONE}
    assert (qret.ERR_CONNECTION, "57P01") in ended
    assert bulk.count(own_db) == 0


def test_stop_during_an_outage(own_db):
    """A host that waits for its next try wakes at once."""
    with qret.Context(servers.conninfo(servers.closed_port()), interval_ms=3_600_000) as context:
        context.try_cycle()
        timer = threading.Timer(0.2, context.stop)
        timer.start()
        started = time.monotonic()
        context.wait()
        assert time.monotonic() - started < 2
        timer.join()
        assert context.try_cycle()[0] == qret.STOPPED


@pytest.mark.parametrize("partitions", [3, 30])
def test_deletes_that_time_out_for_ever_are_not_silent(db, partitions):
    """B05: every delete dies of its limit, cycle after cycle; what is left shows, and grows older.

    A crowd of failures alike ends each cycle as an error. A few are theirs alone: PARTIAL, and
    left alone for a while after the second time, but still overdue.
    """
    _, ids = bulk.backlog(db, partitions, 2)
    with qret.Context(db.dsn, statement_timeout_ms=100, interval_ms=100) as context:
        db.sql("UPDATE queen.queues SET retention_enabled = false")
        good = context.cycle()["last_success_us"]
        db.sql("UPDATE queen.queues SET retention_enabled = true")
        support.fail_deletes_of(db, ids, "PERFORM pg_sleep(1)")
        overdue, samples = [], []
        for number in (1, 2, 3):
            context.samples.clear()
            code, report = context.try_cycle()
            samples.append({sample.name: sample.value for sample in context.samples})
            overdue.append(report["oldest_overdue_us"])
            if partitions == 30:
                assert code == qret.ERR_TIMEOUT and context.sqlstate == "57014"
                assert (report["consecutive_failures"], report["last_success_us"]) == (number, good)
                assert samples[-1]["qretention_consecutive_failures"] == number
            else:
                assert code in (qret.PARTIAL, qret.DONE)
                assert report["items_failed"] == (3 if code == qret.PARTIAL else 0)
            time.sleep(0.05)
        assert context.events("cycle_error" if partitions == 30 else "item_failed")
        if partitions == 3:
            assert overdue[0] > 1_700_000_000 and overdue == sorted(set(overdue)), overdue
            assert samples[-1]["qretention_oldest_overdue_seconds"] > 1700
    assert bulk.count(db) == 2 * partitions
