"""Several lanes: one that idles, one that is lost, one that opens too late."""

import threading
import time

import pytest

from cycle import support
from fault import worlds
from fault.proxy import Proxy, socket_of
from pg import bulk, qret

LIMITS = {"idle_limit_ms": 1000, "parallelism": 2}


def slow_partition(db, partition_id, seconds):
    support.fail_deletes_of(db, partition_id, f"PERFORM pg_sleep({seconds})")


@pytest.mark.parametrize("slow", [0, 59], ids=["lane 1", "lane 0"])
def test_lane_idles_through_a_phase(db, slow):
    """For more than the idle limit, without a gate to keep alive: none is lost, and the next phase has both."""
    _, ids = bulk.backlog(db, 60, 2, age_seconds=20_000)
    slow_partition(db, ids[slow], 0.3)
    bulk.segments(db, ids[slow : slow + 1], 6, 9000)
    options = dict(LIMITS, gate="none", batch_size=1)
    with qret.Context(db.dsn, **options) as context:
        report = context.cycle()
        assert (report["segments_deleted"], report["txns_purged"]) == (126, 126)
        assert report["elapsed_us"] > 2_000_000
        assert not context.events("lane_lost")


@pytest.mark.parametrize("gate", ["session", "lease"])
def test_lane_0_idles_while_another_works(db, gate):
    """For several idle limits: its session lives, the gate stays held, nobody else gets in."""
    _, ids = bulk.backlog(db, 6, 2)
    slow_partition(db, ids[5], 0.7)
    bulk.segments(db, ids[5:], 4, 3600)
    options = dict(LIMITS, gate=gate, interval_ms=1000, batch_size=1)
    codes, over = [], threading.Event()

    def compete():
        with qret.Context(db.dsn, gate=gate, interval_ms=1000) as rival:
            while not over.is_set():
                codes.append(rival.try_cycle()[0])
                time.sleep(0.1)

    with qret.Context(db.dsn, **options) as context:
        context.begin()
        while not context.report()["steps"]:
            if context.process() == qret.WAIT:
                context.wait()
        thread = threading.Thread(target=compete)
        thread.start()
        try:
            code = support.finish(context)
        finally:
            over.set()
            thread.join()
        assert code == qret.DONE, context.message
        assert context.report()["segments_deleted"] == 16
        assert context.report()["elapsed_us"] > 3_000_000
        assert not context.events("release_failed") and not context.events("lane_lost")
    assert qret.DONE not in codes[:-3] and len(codes) > 10


def test_gate_session_ended_while_lane_0_idles(db):
    """Killed by an operator: noticed by the sign of life; nothing more is sent elsewhere."""
    _, ids = bulk.backlog(db, 6, 2)
    slow_partition(db, ids[5], 0.2)
    bulk.segments(db, ids[5:], 40, 3600)
    with qret.Context(db.dsn, batch_size=1, **LIMITS) as context:
        context.begin()
        while context.report()["segments_deleted"] < 14:
            if context.process() == qret.WAIT:
                context.wait()
        assert db.one(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_locks"
            " WHERE locktype = 'advisory' AND objid = 737001"
        )
        started = time.monotonic()
        code = support.finish(context)
        assert code in (qret.ERR_CONNECTION, qret.ERR_LEADER_LOST), context.message
        assert time.monotonic() - started < 3
        deleted = context.report()["segments_deleted"]
    assert deleted < 40 and bulk.count(db) == 52 - deleted


def test_lanes_idle_between_cycles_are_opened_again(db):
    """The server ends sessions that idle longer than the limit: no lane is lost over that."""
    with qret.Context(db.dsn, batch_size=1, **LIMITS) as context:
        for number in range(3):
            queue_id = bulk.queue(db, f"q{number}", retention_enabled=True, retention_seconds=60)
            ids = bulk.partitions(db, queue_id, 20, 3600, f"p{number}-")
            bulk.segments(db, ids, 2, 3600)
            assert context.cycle()["segments_deleted"] == 40
            time.sleep(1.3)
        assert not context.events("lane_lost")


@pytest.mark.parametrize("seed", range(8))
def test_lane_that_opens_while_others_work(db, cluster, seed):
    """Slow to connect, so that its settings are answered at any moment of the run, or too late."""
    _, ids = bulk.backlog(db, 30, 3)
    support.slow_deletes(db, 0.002)
    with Proxy(socket_of(cluster)) as proxy:
        with qret.Context(proxy.dsn(db.name), parallelism=4, batch_size=2) as context:
            context.schema_version("log")  # lane 0 is fast
            proxy.fault_next("delay", "down", 0, 0.002 + 0.004 * seed)
            assert context.cycle()["segments_deleted"] == 90
            bulk.segments(db, ids, 2, 3600)
            assert context.cycle()["segments_deleted"] == 60
    assert worlds.audited(db) == 150


@pytest.mark.parametrize("action", ["cut", "blackhole"])
def test_lane_lost_in_mid_cycle(db, cluster, action):
    """Its items are taken over, the cycle ends well, nothing is counted twice."""
    bulk.backlog(db, 20, 6)
    support.slow_deletes(db, 0.005)
    with Proxy(socket_of(cluster)) as proxy:
        options = {"parallelism": 3, "batch_size": 1, "statement_timeout_ms": 500}
        with qret.Context(proxy.dsn(db.name), **options) as context:
            context.begin()
            while len(proxy.links) < 3 or context.report()["segments_deleted"] < 20:
                if context.process() == qret.WAIT:
                    context.wait()
            proxy.strike_link(proxy.links[1], action)
            code = support.finish(context)
            assert code in (qret.DONE, qret.PARTIAL), context.message
            report = context.report()
            assert context.events("lane_lost")
            assert report["messages_deleted"] <= worlds.audited(db) <= 120
    with qret.Context(db.dsn) as context:
        worlds.heal(context)
    assert bulk.count(db) == 0 and worlds.audited(db) == 120
