"""B68, B69, B70: whatever byte is the last, the call returns once and counts nothing twice.

A real cycle is recorded, then played back and cut at every byte of either direction; the same is
done to a real server at the edges of every message and at a sample of the bytes between.
QRETENTION_CUT_STRIDE=1 cuts the real one at every byte as well.
"""

import os

import pytest

from cycle import support
from fault import wire, worlds
from fault.proxy import DOWN, UP, Proxy, socket_of
from fault.replay import Replay
from pg import qret

HERE = os.path.dirname(os.path.abspath(__file__))
STRIDE = int(os.environ.get("QRETENTION_CUT_STRIDE", "397"))
SHARES = 3  # of the bytes of a direction, so that two workers share them
# With so patient a target the batches do not depend on how long a step took.
OPTIONS = {"batch_size": 2, "step_target_ms": 600_000}


def table():
    """Waiting for -> (returns, logged), as committed."""
    with open(os.path.join(HERE, "cut_points.tsv"), encoding="utf-8") as lines:
        rows = [line.split() for line in lines if line.strip() and not line.startswith("#")]
    return {row[0]: (qret.OUTCOMES[row[1]], row[2]) for row in rows}


TABLE = table()

pytestmark = pytest.mark.slow


def record(proxy, db, **more):
    """(up, down) of one whole cycle in that database."""
    with qret.Context(proxy.dsn(db.name), **OPTIONS, **more) as context:
        context.cycle()
    assert support.eventually(lambda: not proxy.open_links())
    return proxy.links[-1].bytes(UP), proxy.links[-1].bytes(DOWN)


@pytest.fixture(scope="module")
def exchanges(cluster):
    """{"idle": (up, down), "deleting": (up, down)} of a real server, one cycle each."""
    db = cluster.create_database(("broker", "log"))
    with Proxy(socket_of(cluster), record=True) as proxy:
        worlds.fill(db)
        db.sql(worlds.OLD_METRIC)
        deleting = record(proxy, db)
        idle = record(proxy, db)
    db.drop()
    return {"idle": idle, "deleting": deleting}


# Cycles that differ from the deleting one in some of their statements: cut within those alone, at
# every byte, or at the edges of each statement where all differ.
OTHERS = {
    "pruning": {"engines": "log,event", "event_prune_interval_ms": 0},
    "lease": {"gate": "lease"},
    "pooled": {"gate": "lease", "pooler": "transaction"},
}


def other_offsets(name, found, direction, length):
    if name == "pruning":
        return [n for n in range(length) if wire.kind_at(found, direction, n) == "event_prune"]
    return [n for n in wire.edges(found, direction) if n <= length]


@pytest.fixture(scope="module", params=OTHERS)
def other(cluster, request):
    """(name, up, down) of such a cycle."""
    db = cluster.create_database(("broker", "log", "event"))
    with Proxy(socket_of(cluster), record=True) as proxy:
        worlds.fill(db)
        db.sql(worlds.OLD_EVENT)
        up, down = record(proxy, db, **OTHERS[request.param])
    db.drop()
    return request.param, up, down


def check(context, code, report, kind):
    expected, event = TABLE[kind]
    assert code == expected == report["outcome"], f"{kind}: {qret.name_of(code)} {context.message}"
    if event != "-":
        assert len(context.events(event)) == 1, f"{kind}: {context.logs}"
    if code < 0:
        assert context.message and context.retryable
        assert report["consecutive_failures"] == 1
        assert "postgres" not in context.message or "password" not in context.message


def test_table_names_every_statement(exchanges):
    """No kind of cut point without a row, and none that a cycle comes by only by chance."""
    seen = {group.kind for up, down in exchanges.values() for group in wire.groups(up, down)}
    assert seen <= set(TABLE)
    assert set(TABLE) - seen <= {"floors", "renewal", "event_prune"}


def cut_played_back(replay, direction, offsets, **more):
    """FIN and RST in turn, and no descriptor stays."""
    before = worlds.descriptors()
    for number, offset in enumerate(offsets):
        replay.fault = ("reset" if number % 2 else "cut", direction, offset)
        kind = wire.kind_at(replay.found, direction, offset)
        with qret.Context(replay.dsn(), level=qret.LOG_WARN, **OPTIONS, **more) as context:
            code, report = context.try_cycle()
            check(context, code, report, kind)
    assert worlds.descriptors() <= before + 1  # the last one that the replay still closes


def first_other(found, than):
    """The first group that is not as in the other exchange: before it, a cut is the same cut."""
    return next(a for a, b in zip(found, than) if (a.kind, a.up_end) != (b.kind, b.up_end))


@pytest.mark.parametrize("share", range(SHARES))
@pytest.mark.parametrize("direction", [UP, DOWN])
@pytest.mark.parametrize("cycle", ["deleting", "idle"])
def test_cut_at_every_byte(exchanges, cycle, direction, share):
    """Of the cycle that deletes; of the idle one where it begins to be another."""
    up, down = exchanges[cycle]
    length = len(up if direction == UP else down)
    with Replay(up, down) as replay:
        start = 0
        if cycle == "idle":
            other_group = first_other(replay.found, wire.groups(*exchanges["deleting"]))
            start = other_group.up_start if direction == UP else other_group.down_start
        cut_played_back(replay, direction, range(start + share, length + 1, SHARES))


@pytest.mark.parametrize("direction", [UP, DOWN])
def test_cut_in_other_cycles(other, direction):
    """The prune of an outbox, a lease with its fence before each step, and that behind a pooler."""
    name, up, down = other
    with Replay(up, down) as replay:
        length = len(up if direction == UP else down)
        chosen = other_offsets(name, replay.found, direction, length)
        assert len(chosen) > 50
        cut_played_back(replay, direction, chosen, **OTHERS[name])


def offsets(found, direction, length):
    return sorted({*wire.edges(found, direction), *range(0, length, STRIDE)} & {*range(length + 1)})


@pytest.mark.parametrize("direction", [UP, DOWN])
@pytest.mark.parametrize("cycle", ["idle", "deleting"])
def test_cut_in_front_of_a_server(db, cluster, cycle, direction):
    """The gate is free soon, the next cycle finishes the work, and the audit rows are the truth."""
    _, ids = worlds.fill(db)
    pushed = worlds.SEGMENTS
    with Proxy(socket_of(cluster), record=True) as proxy:
        recorded = record(proxy, db)
        if cycle == "idle":
            recorded = record(proxy, db)
    found = wire.groups(*recorded)
    reported = worlds.audited(db)
    with Proxy(socket_of(cluster), record=True) as proxy, qret.Context(db.dsn, **OPTIONS) as healer:
        healer.cycle()
        before = worlds.descriptors()
        for offset in offsets(found, direction, len(recorded[direction == DOWN])):
            if cycle == "deleting":
                worlds.refill(db, ids)
                pushed += worlds.SEGMENTS
            proxy.fault_next("reset" if offset % 2 else "cut", direction, offset)
            with qret.Context(proxy.dsn(db.name), level=qret.LOG_WARN, **OPTIONS) as context:
                code, report = context.try_cycle()
                proxy.settle()
                link = proxy.links.pop()
                passed = link.bytes(DOWN)[: link.streams[DOWN].sent]
                check(context, code, report, wire.awaited(link.bytes(UP), passed))
            healed = worlds.heal(healer)
            reported += report["messages_deleted"] + healed["messages_deleted"]
            assert worlds.audited(db) == pushed
            assert reported <= pushed
            if code == qret.DONE and cycle == "deleting":
                assert healed["messages_deleted"] == healed["txns_purged"] == 0
        assert db.one("SELECT count(*) FROM queen.log_segments") == 0
        proxy.forget()
        assert worlds.descriptors() <= before
    assert support.eventually(lambda: not support.advisory_locks(db))
