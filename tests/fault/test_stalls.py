"""B08: a peer that stops answering costs one time limit; the gate is free soon after.

The limits are a second or less here. What a dead link does below TCP is test_dead_link.py's.
"""

import time

import pytest

from cycle import support
from fault import wire, worlds
from fault.proxy import DOWN, UP, Proxy, socket_of
from pg import bulk, qret

STATEMENT_SECONDS = 0.8  # what a statement on a busy machine does not come near
LIMITS = {
    "connect_timeout_ms": 400,
    "statement_timeout_ms": round(1000 * STATEMENT_SECONDS),
    "lock_timeout_ms": 200,
    "idle_limit_ms": 1000,
    "batch_size": 2,
    "step_target_ms": 600_000,
}
# Who looks at what is left has time: a statement that is slow is not what it looks for.
PATIENT = dict(LIMITS, connect_timeout_ms=10_000, statement_timeout_ms=10_000)
GRACE = 1.0  # on top of statement_timeout_ms, for the server to end the statement itself
MARGIN = 2.5  # for a busy machine
SYNC_BYTES = 5
KINDS = ("startup", "settings", "facts", "gate", "page", "step", "metrics_purge", "release")


@pytest.fixture
def world(db, cluster):
    """(database, partition ids, the groups of a deleting cycle)."""
    _, ids = worlds.fill(db)
    with Proxy(socket_of(cluster), record=True) as proxy:
        with qret.Context(proxy.dsn(db.name), **LIMITS) as context:
            context.cycle()
        assert support.eventually(lambda: not proxy.open_links())
        found = wire.groups(proxy.links[-1].bytes(UP), proxy.links[-1].bytes(DOWN))
    worlds.refill(db, ids)
    return db, found


def expect(context, kind, started):
    code, report = context.try_cycle()
    took = time.monotonic() - started
    wanted = qret.DONE if kind in ("release", "end") else qret.ERR_TIMEOUT
    assert code == wanted == report["outcome"], (kind, qret.name_of(code), context.message)
    limit = 0.4 if kind == "startup" else STATEMENT_SECONDS + GRACE
    assert took < limit + MARGIN, kind
    if code < 0:
        assert context.retryable
    return report


def check_after(db, report, seconds):
    """The gate is free within the idle limit, the work is finished, nothing is counted twice."""
    with qret.Context(db.dsn, **PATIENT) as healer:
        healed = worlds.heal(healer, seconds)
        assert report["messages_deleted"] + healed["messages_deleted"] <= worlds.SEGMENTS
    assert worlds.audited(db) == 2 * worlds.SEGMENTS
    assert db.one("SELECT count(*) FROM queen.log_segments") == 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("action", ["blackhole", "lose"])
def test_silence_costs_one_limit(world, proxy, action, kind):
    """Neither side hears the other any more; the server may not even learn that the client left."""
    db, found = world
    group = next(group for group in found if group.kind == kind)
    proxy.fault_next(action, UP, group.up_start + 3)
    with qret.Context(proxy.dsn(db.name), **LIMITS) as context:
        report = expect(context, kind, time.monotonic())
        check_after(db, report, 1.0 + MARGIN)


@pytest.mark.parametrize("kind", ["startup", "facts", "gate", "step", "release"])
def test_answers_that_never_come(world, proxy, kind):
    """The server hears us and does what it is told; we do not hear it."""
    db, found = world
    group = next(group for group in found if group.kind == kind)
    proxy.fault_next("stall", DOWN, group.down_start + 1)
    with qret.Context(proxy.dsn(db.name), **LIMITS) as context:
        report = expect(context, kind, time.monotonic())
        check_after(db, report, 1.0 + MARGIN)


def test_slow_answers_are_waited_for(world, proxy):
    """Each chunk late, none too late."""
    db, _ = world
    proxy.fault_next("delay", DOWN, 0, 0.05)
    with qret.Context(proxy.dsn(db.name), **LIMITS) as context:
        assert context.cycle()["segments_deleted"] == worlds.SEGMENTS


def test_silence_at_the_next_cycle(world, proxy):
    """An owned connection that went deaf between two cycles is given up and another opened."""
    db, _ = world
    with qret.Context(proxy.dsn(db.name), **LIMITS) as context:
        context.cycle()
        proxy.strike("blackhole")
        expect(context, "facts", time.monotonic())
        proxy.fault_next(None)
        assert context.cycle()["consecutive_failures"] == 0


def test_connection_closed_at_rest_is_opened_again(world, proxy):
    """The server went away between two cycles and is back: nothing is reported as an error."""
    db, _ = world
    with qret.Context(proxy.dsn(db.name), **LIMITS) as context:
        context.cycle()
        proxy.strike("cut")
        assert support.eventually(lambda: not proxy.open_links())
        assert context.cycle()["consecutive_failures"] == 0
        assert context.events("reconnect")


def test_gate_held_by_hand_and_lost_is_told(world, proxy):
    """Between two steps of a host that holds the gate: LEADER_LOST, and a second take works."""
    db, _ = world
    with qret.Context(proxy.dsn(db.name), **LIMITS) as context:
        assert context.gate_take()
        proxy.strike("cut")
        assert support.eventually(lambda: not proxy.open_links())
        code, report = context.try_cycle()
        assert code == qret.ERR_LEADER_LOST and report["steps"] == 0
        assert context.gate_take()
        context.gate_release()


def test_stop_ends_a_wait_for_a_deaf_host(proxy, db):
    """A stop while connecting: the call comes back at once, not at the connect limit."""
    proxy.fault_next("blackhole", UP, 0)
    with qret.Context(proxy.dsn(db.name), connect_timeout_ms=30_000) as context:
        context.begin()
        context.process()
        context.stop()
        started = time.monotonic()
        assert support.finish(context) == qret.STOPPED
        assert time.monotonic() - started < MARGIN


def test_transaction_left_open_by_a_middlebox_ends(world, proxy):
    """All but the sync point arrives, then nothing more: transaction_timeout ends the backend."""
    db, found = world
    if db.cluster.version < 170000:
        pytest.skip("transaction_timeout came with PostgreSQL 17")
    group = next(group for group in found if group.kind == "step")
    proxy.fault_next("blackhole", UP, group.up_end - SYNC_BYTES)
    with qret.Context(proxy.dsn(db.name), **LIMITS) as context:
        report = expect(context, "step", time.monotonic())
        check_after(db, report, 2 * STATEMENT_SECONDS + 1.0 + MARGIN)
    assert "57P01" not in db.cluster.log() and "transaction timeout" in db.cluster.log()


def test_transaction_limit_is_known_and_no_shorter_than_its_statements(db):
    """A role's own limit gives way to it, on servers that have it; older ones go without."""
    known = db.cluster.version >= 170000
    if known:
        db.cluster.admin(f'ALTER DATABASE "{db.name}" SET transaction_timeout = 200')
        db.close()
    bulk.backlog(db, 1, 3)
    support.slow_deletes(db, 0.5)
    for options in ({}, {"pooler": "transaction", "gate": "none"}):
        with qret.Context(db.dsn, **options) as context:
            assert context.cycle()["consecutive_failures"] == 0
