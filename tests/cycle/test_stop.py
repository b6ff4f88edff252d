"""No batch begins after qret_stop: in every state, from elsewhere, asleep, beside a hung server."""

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import threading
import time

import pytest

from cycle import support
from pg import bulk, qret

BATCH = 3
HELPER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "signal_stop.c")


def rows(db):
    tables = "log_segments", "log_txns", "log_partitions"
    return sum(bulk.count(db, table) for table in tables)


def small_world(db):
    """Work for phases 1 to 4, in many small batches."""
    bulk.backlog(db, 4, 7, age_seconds=2 * support.HOUR)
    evicting = bulk.queue(db, "evicting", max_wait_time_seconds=60)
    bulk.segments(db, bulk.partitions(db, evicting, 2), 7, 2 * support.HOUR)
    bulk.partitions(db, bulk.queue(db, "empty"), 7, 40 * support.DAY)


def calls_of_a_cycle(db):
    """How many process calls a whole cycle of the small world takes."""
    calls = 0
    with qret.Context(db.dsn, batch_size=BATCH) as context:
        context.begin()
        while (code := context.process()) in (qret.MORE, qret.WAIT):
            calls += 1
            if code == qret.WAIT:
                context.wait()
        assert code == qret.DONE
    return calls


def refill(db):
    db.sql("TRUNCATE queen.queues, queen.log_txns, queen.retention_history CASCADE")
    small_world(db)


def test_stop_in_every_state(db):
    """After each number of process calls in turn: at most one batch more, and the gate is free."""
    small_world(db)
    total = calls_of_a_cycle(db)
    assert total > 20
    stopped = 0
    for calls in sorted({*range(0, 16), *range(16, total, max(1, total // 40))}):
        refill(db)
        with qret.Context(db.dsn, batch_size=BATCH) as context:
            context.begin()
            for _ in range(calls):
                code = context.process()
                if code == qret.WAIT:
                    context.wait()
                elif code != qret.MORE:
                    break
            else:
                before = rows(db)
                context.stop()
                code = support.finish(context)
                gone = before - rows(db)
                if code == qret.STOPPED:
                    stopped += 1
                    assert gone <= BATCH, calls
                else:
                    assert (code, gone) == (qret.DONE, 0), calls  # there was nothing left to begin
            assert context.report()["outcome"] == code
            assert support.advisory_locks(db) == [], calls
            assert context.call("cycle_begin") in (qret.STOPPED, qret.DONE)
    assert stopped > 20


def test_stop_is_sticky_until_resume(db):
    small_world(db)
    before = rows(db)
    with qret.Context(db.dsn, batch_size=BATCH) as context:
        context.stop()
        for _ in range(2):
            code, report = context.try_cycle()
            assert code == qret.STOPPED == report["outcome"]
            assert report["round_trips"] == 0
        item = qret.work_item("00000000-0000-0000-0000-000000000001")
        result = qret.StepResult()
        pointers = ctypes.byref(item), ctypes.byref(result)
        assert context.call("step", qret.PHASE_RETENTION, *pointers) == qret.STOPPED
        assert context.call("gate_take") == qret.STOPPED
        assert context.call("schema_install", b"log") == qret.STOPPED
        version = ctypes.c_int32()
        assert context.call("schema_version", b"log", ctypes.byref(version)) == qret.STOPPED
        handle = ctypes.c_void_p()
        assert context.call("worklist_build", ctypes.byref(handle)) == qret.STOPPED
        assert context.call("cycle_begin") == qret.STOPPED
        assert rows(db) == before
        assert support.others(db) == []
        context.resume()
        assert context.cycle()["segments_deleted"] == 28


def test_stop_leaves_the_accessors_working(db):
    with qret.Context(db.dsn) as context:
        context.cycle()
        context.stop()
        assert context.get("batch_size") == "1000"
        assert context.report()["outcome"] == qret.DONE
        assert context.poll_fds()
        assert context.message == ""


def test_stop_from_another_thread(db):
    bulk.backlog(db, 200, 1)
    support.slow_deletes(db, 0.05)
    with qret.Context(db.dsn, batch_size=1) as context:
        left = []

        def stop():
            context.stop()
            left.append(bulk.count(db))

        timer = threading.Timer(0.5, stop)
        timer.start()
        started = time.monotonic()
        code, report = context.try_cycle()
        assert code == qret.STOPPED
        assert time.monotonic() - started < 2
        timer.join()
        assert 0 < report["segments_deleted"] < 200
        assert left[0] - bulk.count(db) <= 1


@pytest.fixture(scope="module")
def helper(tmp_path_factory):
    library = tmp_path_factory.mktemp("signal") / "signal_stop.so"
    compiler = os.environ.get("CC", "cc")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, HELPER], check=True)
    return ctypes.CDLL(str(library))


def arm(helper, context):
    stop = ctypes.cast(context.lib.qret_stop, ctypes.c_void_p)
    helper.signal_stop_arm.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    assert helper.signal_stop_arm(stop, context.handle) == 0


def test_stop_from_a_signal_handler(db, helper):
    bulk.backlog(db, 200, 1)
    support.slow_deletes(db, 0.05)
    with qret.Context(db.dsn, batch_size=1) as context:
        arm(helper, context)
        try:
            timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGUSR1))
            timer.start()
            started = time.monotonic()
            code, report = context.try_cycle()
            assert code == qret.STOPPED
            assert time.monotonic() - started < 2
            assert 0 < report["segments_deleted"] < 200
            assert helper.signal_stop_errno_kept() == 1
            timer.join()
        finally:
            helper.signal_stop_disarm()


@pytest.mark.parametrize("how", ["thread", "signal"])
def test_stop_wakes_a_wait_between_cycles(db, helper, how):
    with qret.Context(db.dsn, interval_ms=3_600_000) as context:
        context.cycle()
        if how == "signal":
            arm(helper, context)
            timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGUSR1))
        else:
            timer = threading.Timer(0.3, context.stop)
        timer.start()
        try:
            started = time.monotonic()
            context.wait()
            assert 0.2 < time.monotonic() - started < 2
            timer.join()
        finally:
            helper.signal_stop_disarm()
        assert context.try_cycle()[0] == qret.STOPPED


def test_stop_before_a_wait_is_not_missed(db):
    with qret.Context(db.dsn, interval_ms=3_600_000) as context:
        context.cycle()
        context.stop()
        started = time.monotonic()
        context.wait()
        assert time.monotonic() - started < 1


def test_stop_makes_its_descriptor_readable(db):
    with qret.Context(db.dsn) as context:
        context.begin()
        poller = select.poll()
        watched = [fd for fd, events in context.poll_fds() if events & qret.POLL_READ]
        assert watched
        for fd in watched:
            poller.register(fd, select.POLLIN)
        context.stop()
        assert poller.poll(1000)
        assert support.finish(context) == qret.STOPPED


def test_stop_inside_the_log_callback(db):
    """The one call that is allowed there."""
    bulk.backlog(db, 3, 1)
    with qret.Context(db.dsn) as context:
        context.on_log = lambda line: context.stop()
        context.try_cycle()
        assert context.try_cycle()[0] == qret.STOPPED


@contextlib.contextmanager
def frozen(db):
    """The sessions of the library, stopped in their tracks and without a warning."""
    pids = [pid for pid, _ in support.others(db)]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


LIMITS = {
    "statement_timeout_ms": 600,
    "lock_timeout_ms": 300,
    "connect_timeout_ms": 1000,
    "idle_limit_ms": 1000,
}


@pytest.mark.parametrize("calls", [0, 1, 2, 4, 8, 16, 32])
def test_stop_while_the_server_hangs(db, calls):
    """Within the time limits, whatever the library was waiting for; the next cycle works again."""
    small_world(db)
    with qret.Context(db.dsn, batch_size=BATCH, **LIMITS) as context:
        context.cycle()  # opens the connection
        refill(db)
        context.begin()
        for _ in range(calls):
            if context.process() == qret.WAIT and calls > 1:
                context.wait()
        with frozen(db):
            timer = threading.Timer(0.2, context.stop)
            timer.start()
            started = time.monotonic()
            code = support.finish(context)
            took = time.monotonic() - started
            timer.join()
        assert code in (qret.STOPPED, qret.ERR_TIMEOUT, qret.ERR_CONNECTION), context.message
        assert took < 6
        assert support.eventually(lambda: not support.advisory_locks(db))
        context.resume()
        assert context.try_cycle()[0] == qret.DONE


def test_hung_server_without_a_stop_ends_in_time(db):
    small_world(db)
    with qret.Context(db.dsn, batch_size=BATCH, **LIMITS) as context:
        context.cycle()
        refill(db)
        context.begin()
        while not context.report()["steps"]:
            if context.process() == qret.WAIT:
                context.wait()
        with frozen(db):
            started = time.monotonic()
            code = support.finish(context)
            assert code in (qret.ERR_TIMEOUT, qret.ERR_CONNECTION)
            assert context.retryable
            assert time.monotonic() - started < 6
        assert support.eventually(lambda: not support.advisory_locks(db))
        assert context.try_cycle()[0] == qret.DONE


def test_free_in_mid_cycle_leaves_nothing(db):
    small_world(db)
    context = qret.Context(db.dsn, batch_size=BATCH)
    context.begin()
    while not context.report()["steps"]:
        if context.process() == qret.WAIT:
            context.wait()
    started = time.monotonic()
    context.close()
    assert time.monotonic() - started < 1
    assert support.eventually(lambda: not support.advisory_locks(db))
    assert support.eventually(lambda: not support.others(db))
