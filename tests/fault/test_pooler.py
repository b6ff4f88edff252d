"""B01, B02, B32, B33, B36: behind a real PgBouncer, transaction mode, two server connections."""

import signal
import threading
import time

import psycopg2
import pytest

from cycle import support
from fault import hosts, pooler, spies, worlds
from pg import bulk, qret

POOLED = {"pooler": "transaction", "gate": "lease"}
INTERVAL = 1.0


@pytest.fixture
def pooled(stamped, stamped_db):
    """(database, PgBouncer in front of it)."""
    with pooler.PgBouncer(stamped) as bouncer:
        yield stamped_db, bouncer


def test_pooler_cycle(pooled):
    """All phases, nothing named, nothing left on the server connections (B33)."""
    db, bouncer = pooled
    worlds.fill(db, partitions=20, segments=10)
    db.sql(worlds.OLD_METRIC)
    with qret.Context(bouncer.dsn(db.name), batch_size=7, **POOLED) as context:
        report = context.cycle()
    assert report["segments_deleted"] == report["txns_purged"] == 200
    assert (report["partitions_deleted"], report["metrics_purged"]) == (1, 1)
    assert support.eventually(lambda: not support.advisory_locks(db))
    for connection in (psycopg2.connect(bouncer.dsn(db.name)) for _ in range(2)):
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT (SELECT count(*) FROM pg_prepared_statements),"
                " current_setting('statement_timeout'), current_setting('search_path'),"
                " current_setting('jit'), current_setting('synchronous_commit')"
            )
            assert cursor.fetchone() == (0, "0", '"$user", public', "on", "on")
        connection.close()


def test_pooler_hundreds_of_cycles_see_no_prepared_statement(pooled):
    """B33: three instances side by side on two server connections."""
    db, bouncer = pooled
    codes = []

    def run():
        options = {"pooler": "transaction", "gate": "none"}
        with qret.Context(bouncer.dsn(db.name), **options) as context:
            for _ in range(50):
                code, _ = context.try_cycle()
                codes.append((code, context.sqlstate))

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {*codes} == {(qret.DONE, "")} and len(codes) == 150


def test_pooler_limits_take_effect(pooled):
    """B32: connects through the defaults, and a slow statement ends at statement_timeout_ms."""
    db, bouncer = pooled
    _, ids = bulk.backlog(db, 3, 2)
    support.fail_deletes_of(db, ids[0], "PERFORM pg_sleep(20)")
    with qret.Context(bouncer.dsn(db.name), statement_timeout_ms=300, **POOLED) as context:
        started = time.monotonic()
        code, report = context.try_cycle()
        assert code == qret.PARTIAL and report["segments_deleted"] == 4
        assert time.monotonic() - started < 8


def test_pooler_with_lanes(pooled):
    db, bouncer = pooled
    bulk.backlog(db, 40, 5)
    with qret.Context(bouncer.dsn(db.name), parallelism=3, batch_size=3, **POOLED) as context:
        assert context.cycle()["segments_deleted"] == 200


def test_pooler_by_hand(pooled):
    db, bouncer = pooled
    bulk.backlog(db, 3, 5)
    with qret.Context(bouncer.dsn(db.name), **POOLED) as context:
        items = context.worklist_structs()[1]
        assert (
            context.call("step", qret.PHASE_RETENTION, items[0], qret.StepResult())
            == qret.ERR_STATE
        )
        assert context.gate_take()
        assert sum(context.drain(qret.PHASE_RETENTION, item) for item in items) == 15
        context.gate_release()


@pytest.mark.parametrize("call", ["run_cycle", "gate_take", "worklist_build"])
def test_pooler_refuses_a_session_gate(pooled, call):
    """It cannot be right, and the message says why and what to do."""
    db, bouncer = pooled
    with qret.Context(bouncer.dsn(db.name), pooler="transaction", gate="session") as context:
        arguments = {"gate_take": []}.get(call, [None])
        assert context.call(call, *arguments) in (qret.ERR_OPTION, qret.ERR_STATE)
        assert "session" in context.message and "lease" in context.hint


def test_pooler_with_the_host_as_leader(pooled):
    db, bouncer = pooled
    bulk.backlog(db, 2, 5)
    with qret.Context(bouncer.dsn(db.name), pooler="transaction", gate="none") as context:
        assert context.cycle()["segments_deleted"] == 10


def test_pooler_client_gone_without_a_word(pooled):
    """B02: a leader's socket closes in mid-cycle; another sweeps within lease and interval."""
    db, bouncer = pooled
    bulk.backlog(db, 10, 5)
    support.slow_deletes(db, 0.02)
    options = dict(POOLED, interval_ms=1000, batch_size=1)
    leader = qret.Context(bouncer.dsn(db.name), **options)
    leader.begin()
    while not leader.report()["steps"]:
        if leader.process() == qret.WAIT:
            leader.wait()
    leader.close()
    started = time.monotonic()
    with qret.Context(bouncer.dsn(db.name), **options) as fresh:
        worlds.heal(fresh, 10)
    assert time.monotonic() - started < 2 * INTERVAL + 3
    assert bulk.count(db) == 0


@pytest.mark.slow
def test_pooler_leader_killed_ten_times(pooled):
    """B36: kill -9 in mid-step; the next instance takes over each time, by itself."""
    db, bouncer = pooled
    spies.install(db)
    support.slow_deletes(db, 0.05)
    queue_id, ids = bulk.backlog(db, 4, 5)
    pushed = 20
    options = dict(POOLED, interval_ms=300, batch_size=1)
    for round_number in range(10):
        bulk.segments(db, ids, 5, support.HOUR)
        pushed += 20
        name = f"victim-{round_number}"
        before = db.one("SELECT count(*) FROM public.swept")
        with hosts.Host(bouncer.dsn(db.name, application_name=name), **options) as victim:
            victim.wait_for(lambda line: "begin" in line)
            assert support.eventually(
                lambda: db.one("SELECT count(*) FROM public.swept") > before, 20
            )
            victim.signal(signal.SIGKILL)
    bouncer.reconnect()
    with qret.Context(bouncer.dsn(db.name), **options) as last:
        worlds.heal(last, 10)
    assert bulk.count(db) == 0 == len(spies.overlaps(db))
    assert worlds.audited(db) == pushed == sum(row[3] for row in spies.swept(db))
    assert not support.advisory_locks(db)
    assert queue_id


# Advisory locks of a session that runs nothing, or that are older than a cycle has any right to be.
STRANDED = """
SELECT pid, classid, objid FROM pg_locks JOIN pg_stat_activity AS a USING (pid)
WHERE locktype = 'advisory' AND granted AND a.datname = current_database()
    AND (a.state = 'idle' OR a.state_change < clock_timestamp() - make_interval(secs => %s))
"""


@pytest.mark.slow
def test_pooler_three_instances(pooled):
    """B01: a cycle at least every two intervals, never two at once, no lock older than a cycle."""
    db, bouncer = pooled
    spies.install(db)
    _, ids = bulk.backlog(db, 5, 4)
    options = dict(POOLED, interval_ms=int(1000 * INTERVAL), batch_size=2)
    stranded, seen_before = [], set()
    with hosts.Host(
        bouncer.dsn(db.name, application_name="a"), seconds=30, **options
    ) as a, hosts.Host(
        bouncer.dsn(db.name, application_name="b"), seconds=30, **options
    ) as b, hosts.Host(
        bouncer.dsn(db.name, application_name="c"), seconds=30, **options
    ) as c:
        group = [a, b, c]
        for host in group:
            host.wait_for(lambda line: "ready" in line)
        until = time.monotonic() + 10 * INTERVAL
        killed = False
        while time.monotonic() < until:
            bulk.segments(db, ids, 1, support.HOUR)
            # Two looks in a row: pg_locks and pg_stat_activity are not read at one instant.
            seen = set(db.sql(STRANDED, INTERVAL))
            stranded += seen & seen_before
            seen_before = seen
            time.sleep(0.2)
            if not killed and time.monotonic() > until - 6 * INTERVAL:
                a.kill()
                killed = True
        for host in (b, c):
            host.signal(signal.SIGTERM)
        ends = sorted(line["end"] for host in group for line in host.ends("DONE"))
    gaps = [later - earlier for earlier, later in zip(ends, ends[1:])]
    assert len(ends) >= 5 and max(gaps) < 2 * INTERVAL + 1.0, gaps
    assert not spies.overlaps(db)
    assert stranded == []
    assert not support.advisory_locks(db)
