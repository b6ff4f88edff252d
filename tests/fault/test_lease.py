"""L16, gate lease: one leader on the server's clock, a fence against what is late, one cadence."""

import signal
import threading
import time

import pytest

from cycle import support
from fault import hosts, spies, worlds
from pg import bulk, qret

LEASE = {"gate": "lease", "interval_ms": 1000}


@pytest.fixture
def lease_db(stamped_db):
    return stamped_db


def row(db):
    return db.sql("SELECT holder, fence, runs FROM queen.retention_lease")[0]


def run_until(context, condition):
    while not condition():
        if context.process() == qret.WAIT:
            context.wait()


def test_lease_sweeps_and_is_given_back(lease_db):
    worlds.fill(lease_db)
    with qret.Context(lease_db.dsn, **LEASE) as context:
        assert context.cycle()["segments_deleted"] == worlds.SEGMENTS
        assert row(lease_db)[0] is None
        # The interval is the cluster's now: not due yet.
        assert context.try_cycle()[0] == qret.BUSY
        assert not [line for line in context.logs if line.level <= qret.LOG_WARN]


def test_lease_first_claims_at_once(lease_db):
    """The loser of the very first race finds the lease busy, and not an error."""
    claim = "SELECT state FROM queen.retention_lease_claim_v1(%s, 1000, 1000, 737001)"
    first, second = lease_db.connect(autocommit=False), lease_db.connect()
    with first.cursor() as one:
        one.execute(claim, ("first",))
        assert one.fetchone() == ("granted",)
    answers = []

    def try_second():
        with second.cursor() as two:
            two.execute(claim, ("second",))
            answers.append(two.fetchone())

    thread = threading.Thread(target=try_second)
    thread.start()
    time.sleep(0.3)
    first.commit()
    thread.join()
    assert answers == [("busy",)]


def test_lease_is_renewed_through_a_long_cycle(lease_db):
    """B37: a cycle of several leases keeps its lead; nobody else gets in."""
    bulk.backlog(lease_db, 4, 20)
    support.slow_deletes(lease_db, 0.05)
    rival_codes = []
    options = dict(LEASE, lease_ms=500, batch_size=1)
    with qret.Context(lease_db.dsn, **options) as context, qret.Context(
        lease_db.dsn, **options
    ) as rival:
        done = threading.Event()

        def compete():
            while not done.is_set():
                rival_codes.append(rival.try_cycle()[0])
                time.sleep(0.05)

        context.begin()
        run_until(context, lambda: context.report()["steps"])
        thread = threading.Thread(target=compete)
        thread.start()
        try:
            code = support.finish(context)
        finally:
            done.set()
            thread.join()
        assert code == qret.DONE
        assert context.report()["segments_deleted"] == 80
        assert context.report()["elapsed_us"] > 2_000_000
    assert set(rival_codes[:-1]) == {qret.BUSY}
    assert row(lease_db)[1] == context_fences(rival_codes)


def context_fences(codes):
    """One claim was granted to the leader, and one more to a rival that came after it."""
    return 1 + sum(code == qret.DONE for code in codes)


def test_lease_of_a_crashed_host_is_taken_over(lease_db):
    """B37: within the lease and one more look, without anybody's help."""
    bulk.backlog(lease_db, 10, 4)
    support.slow_deletes(lease_db, 0.05)
    options = dict(LEASE, batch_size=1)
    with hosts.Host(lease_db.dsn, **options) as victim:
        victim.wait_for(lambda line: "begin" in line)
        assert support.eventually(lambda: bulk.count(lease_db) < 38)
        victim.kill()
    started = time.monotonic()
    with qret.Context(lease_db.dsn, **options) as context:
        codes = []
        while (code := context.try_cycle()[0]) == qret.BUSY:
            codes.append(code)
            context.wait()
            assert time.monotonic() - started < 10
        assert code == qret.DONE
        assert len(codes) < 8  # it is told when to look again
    assert bulk.count(lease_db) == 0
    assert worlds.audited(lease_db) == 40


def test_lease_fence_stops_a_leader_that_slept(lease_db):
    """SIGSTOP for longer than the lease: another takes over, the sleeper deletes nothing more."""
    spies.install(lease_db)
    bulk.backlog(lease_db, 10, 12)
    support.slow_deletes(lease_db, 0.02)
    options = dict(LEASE, lease_ms=400, batch_size=1)
    dsn = lease_db.dsn
    with hosts.Host(dsn + " application_name=sleeper", **options) as sleeper:
        sleeper.wait_for(lambda line: "begin" in line)
        assert support.eventually(lambda: bulk.count(lease_db) < 115)
        sleeper.signal(signal.SIGSTOP)
        with qret.Context(dsn + " application_name=heir", **options) as heir:
            heir.begin()
            code = support.finish(heir)
            while code == qret.BUSY:
                heir.wait()
                heir.begin()
                run = [heir.process() for _ in range(1)]
                code = run[0] if run[0] not in (qret.MORE, qret.WAIT) else None
                if code is None:
                    run_until(
                        heir,
                        lambda: heir.report()["steps"] or heir.report()["outcome"] != qret.MORE,
                    )
                    if heir.report()["outcome"] != qret.MORE:
                        code = heir.report()["outcome"]
                        continue
                    # The heir leads and has begun: now the sleeper wakes.
                    sleeper.signal(signal.SIGCONT)
                    code = support.finish(heir)
            assert code == qret.DONE, heir.message
        line = sleeper.wait_for(lambda line: "end" in line)
        assert line["code"] == "ERR_LEADER_LOST"
        assert line["sqlstate"] in ("QR002", "QR007", "")
    assert not spies.overlaps(lease_db)
    names = [name for name, *_ in spies.swept(lease_db)]
    assert names == sorted(names, reverse=True)  # all of the sleeper's, then all of the heir's
    assert worlds.audited(lease_db) == 120 and bulk.count(lease_db) == 0


def test_lease_barrier_waits_for_a_step_under_way(lease_db):
    """The claim expires while a long step runs: the successor's first delete comes after it."""
    spies.install(lease_db)
    _, ids = bulk.backlog(lease_db, 2, 5)
    support.fail_deletes_of(lease_db, ids[:1], "PERFORM pg_sleep(0.4)")
    options = dict(LEASE, interval_ms=300, lock_timeout_ms=5000)
    dsn = lease_db.dsn
    with hosts.Host(dsn + " application_name=slow", **options) as slow:
        slow.wait_for(lambda line: "begin" in line)
        assert support.eventually(
            lambda: lease_db.one(
                "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
            )
        )
        slow.signal(signal.SIGSTOP)
        with qret.Context(dsn + " application_name=next", **options) as heir:
            worlds.heal(heir)
    assert not spies.overlaps(lease_db)
    assert worlds.audited(lease_db) == 10


def test_lease_cadence_is_the_clusters(lease_db):
    """B10: three hosts at one interval run as many cycles as one would."""
    options = dict(LEASE, interval_ms=300)
    with hosts.Host(lease_db.dsn, 20, **options) as a, hosts.Host(
        lease_db.dsn, 20, **options
    ) as b, hosts.Host(lease_db.dsn, 20, **options) as c:
        for host in (a, b, c):
            host.wait_for(lambda line: "ready" in line)
        runs = row(lease_db)[2]
        started = time.monotonic()
        time.sleep(3)
        ran, took = row(lease_db)[2] - runs, time.monotonic() - started
    assert ran <= took / 0.3 + 1
    assert ran >= took / 0.3 / 2 - 1


def test_lease_graceful_stop_hands_over_at_once(lease_db):
    """B81: the next instance need not wait for lease or interval."""
    bulk.backlog(lease_db, 10, 10)
    support.slow_deletes(lease_db, 0.02)
    options = dict(LEASE, interval_ms=60_000, batch_size=1)
    with qret.Context(lease_db.dsn, **options) as leader, qret.Context(
        lease_db.dsn, **options
    ) as heir:
        leader.begin()
        run_until(leader, lambda: leader.report()["steps"] > 3)
        assert heir.try_cycle()[0] == qret.BUSY
        leader.stop()
        assert support.finish(leader) == qret.STOPPED
        assert row(lease_db)[0] is None
        assert heir.cycle()["segments_deleted"] > 0
    assert bulk.count(lease_db) == 0


@pytest.mark.parametrize("holder", [None, "another"])
def test_lease_begun_by_a_clock_that_was_ahead(lease_db, holder):
    """The server's clock has been set back by an hour: nobody waits for it to come round again."""
    worlds.fill(lease_db)
    lease_db.sql(
        "UPDATE queen.retention_lease SET holder = %s, fence = 7, last_start = now() + '1 hour',"
        " next_due = now() + '1 hour', expires_at = now() + '1 hour'",
        holder,
    )
    with qret.Context(lease_db.dsn, **LEASE) as context:
        assert context.cycle()["segments_deleted"] == worlds.SEGMENTS
        assert context.try_cycle()[0] == qret.BUSY
    assert row(lease_db) == (None, 8, 1)


def test_lease_begun_a_moment_ahead_is_waited_for(lease_db):
    """By less than an interval: a leader at work is not pushed aside over that."""
    lease_db.sql(
        "UPDATE queen.retention_lease SET holder = 'another', last_start = now() + '0.7 s',"
        " next_due = now() + '1.7 s', expires_at = now() + '1.7 s'"
    )
    with qret.Context(lease_db.dsn, **LEASE) as context:
        assert context.try_cycle()[0] == qret.BUSY
        assert context.next_cycle_us() - context.lib.qret_now_us() <= 1_000_000


def test_lease_paused_by_an_operator(lease_db):
    worlds.fill(lease_db)
    lease_db.sql("UPDATE queen.retention_lease SET enabled = false")
    with qret.Context(lease_db.dsn, **LEASE) as context:
        assert [context.try_cycle()[0] for _ in range(3)] == [qret.PAUSED] * 3
        assert context.report()["steps"] == 0
        lease_db.sql("UPDATE queen.retention_lease SET enabled = true")
        assert context.cycle()["segments_deleted"] == worlds.SEGMENTS


def test_lease_respects_a_session_gate(lease_db):
    """During a change from one gate to the other both may run for a while: still one at a time."""
    bulk.backlog(lease_db, 5, 5)
    holder = lease_db.connect()
    with holder.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(737001)")
    with qret.Context(lease_db.dsn, **LEASE) as context:
        assert context.try_cycle()[0] == qret.BUSY
        holder.close()
        worlds.heal(context)
    assert bulk.count(lease_db) == 0


def test_lease_lost_by_hand_is_told(lease_db):
    """Somebody takes the lease over between two steps of a host that steps by hand."""
    _, ids = bulk.backlog(lease_db, 2, 5)
    with qret.Context(lease_db.dsn, **LEASE) as context:
        items = context.worklist_structs()[1]
        assert context.gate_take()
        assert context.step(qret.PHASE_RETENTION, items[0])["rows_deleted"] == 5
        lease_db.sql("UPDATE queen.retention_lease SET fence = fence + 1, holder = 'another'")
        result = qret.StepResult()
        assert context.call("step", qret.PHASE_RETENTION, items[1], result) == qret.ERR_LEADER_LOST
        assert context.sqlstate == "QR002"
    assert bulk.count(lease_db) == 5 and len(ids) == 2


def test_lease_missing_is_told(db):
    db.sql("DROP FUNCTION queen.retention_lease_claim_v1(text, bigint, bigint, bigint)")
    with qret.Context(db.dsn, **LEASE) as context:
        code, _ = context.try_cycle()
        assert code == qret.ERR_SCHEMA and "install" in context.hint


def test_lease_with_a_lost_connection(lease_db, stamped):
    """Cut at many moments: the lease runs out by itself and the next cycle finishes the work."""
    from fault.proxy import DOWN, UP, Proxy, socket_of

    _, ids = worlds.fill(lease_db)
    options = dict(LEASE, interval_ms=100, batch_size=2)
    pushed = worlds.SEGMENTS
    with Proxy(socket_of(stamped)) as proxy, qret.Context(lease_db.dsn, **options) as healer:
        for direction, offsets in ((UP, range(6500, 16000, 900)), (DOWN, range(1100, 4000, 300))):
            for offset in offsets:
                worlds.heal(healer)
                worlds.refill(lease_db, ids)
                pushed += worlds.SEGMENTS
                time.sleep(0.1)
                proxy.fault_next("cut", direction, offset)
                with qret.Context(proxy.dsn(lease_db.name), **options) as context:
                    code, _ = context.try_cycle()
                    assert code in (qret.ERR_CONNECTION, qret.DONE, qret.BUSY), context.message
        worlds.heal(healer)
        worlds.heal(healer)
    assert bulk.count(lease_db) == 0 and worlds.audited(lease_db) == pushed
