"""A real primary and standby: who is asked, what a standby says, life after a promotion."""

import pytest

from cycle import support
from fault import replication, worlds
from pg import bulk, qret
from pg.cluster import Database

LIMITS = {"connect_timeout_ms": 3000, "statement_timeout_ms": 3000, "interval_ms": 100}


@pytest.fixture(scope="module")
def primary():
    with replication.primary() as server:
        yield server


@pytest.fixture
def pair(primary):
    with replication.Pair(primary) as both:
        yield both


def outcomes(context, count):
    return [context.try_cycle()[0] for _ in range(count)]


def fill_as_found(pair):
    """Work that a cycle has looked at, and work that none has; what is not due, likewise."""
    found, _ = worlds.fill(pair.db)
    young = bulk.queue(pair.db, "young", retention_enabled=True, retention_seconds=90_000)
    bulk.segments(pair.db, bulk.partitions(pair.db, young, 1, 60, "y"), 1, 60)
    pair.db.sql("UPDATE queen.queues SET retention_enabled = false")
    with qret.Context(pair.db.dsn) as context:
        context.cycle()
    pair.db.sql("UPDATE queen.queues SET retention_enabled = true")
    bulk.segments(pair.db, bulk.partitions(pair.db, found, 1, 7200, "new"), 3, 7200)
    pair.standby.catch_up()


# What a host may list: every partition, or the two that have something to delete.
LISTED = {"scan": 3, "due": 2, "auto": 2}


@pytest.mark.parametrize("work_list", LISTED)
def test_permanent_standby(pair, work_list):
    """One log line, however many cycles; no error, no step, no lock; then it is promoted."""
    fill_as_found(pair)
    with qret.Context(pair.dsn(pair.standby), work_list=work_list, **LIMITS) as context:
        assert outcomes(context, 5) == [qret.STANDBY] * 5
        assert len(context.events("standby")) == 1
        assert [line for line in context.logs if line.level <= qret.LOG_WARN] == []
        report = context.report()
        assert report["steps"] == 0 == report["consecutive_failures"]
        assert len(context.worklist()) == LISTED[work_list]  # looking is allowed
        assert context.call("gate_take") == qret.STANDBY
        item = context.worklist_structs()[1][0]
        assert context.call("step", qret.PHASE_RETENTION, item, qret.StepResult()) == qret.STANDBY
        copy = Database(pair.standby, pair.db.name)
        assert support.advisory_locks(copy) == []
        copy.close()
        pair.standby.promote()
        assert context.cycle()["segments_deleted"] == worlds.SEGMENTS + 3
        # A standby again, so it is told again.
        pair.standby.admin(
            f'ALTER DATABASE "{pair.db.name}" SET default_transaction_read_only = on'
        )
        context.connect(pair.dsn(pair.standby))
        assert outcomes(context, 2) == [qret.STANDBY] * 2
        assert len(context.events("standby")) == 2


@pytest.mark.parametrize("attributes", ["read-write", "primary"])
def test_primary_is_found_behind_a_standby(pair, attributes):
    worlds.fill(pair.db)
    dsn = pair.dsn(pair.standby, pair.primary, target_session_attrs=attributes)
    with qret.Context(dsn, **LIMITS) as context:
        assert context.cycle()["segments_deleted"] == worlds.SEGMENTS


def test_wishes_of_the_conninfo_for_a_standby(pair):
    worlds.fill(pair.db)
    for attributes in ("standby", "prefer-standby", "read-only"):
        dsn = pair.dsn(pair.primary, pair.standby, target_session_attrs=attributes)
        with qret.Context(dsn, **LIMITS) as context:
            assert context.try_cycle()[0] == qret.STANDBY
    with qret.Context(pair.dsn(pair.primary, target_session_attrs="prefer-standby")) as context:
        assert context.cycle()["segments_deleted"] == worlds.SEGMENTS


def test_promotion_while_hosts_run(pair):
    """The primary dies in mid-cycle, the standby takes over, the same context goes on there."""
    _, ids = bulk.backlog(pair.db, 20, 10)
    support.slow_deletes(pair.db, 0.01)
    pair.standby.catch_up()
    dsn = pair.dsn(pair.primary, pair.standby, target_session_attrs="read-write")
    with qret.Context(dsn, batch_size=2, **LIMITS) as context:
        before = worlds.descriptors()
        context.begin()
        while context.report()["segments_deleted"] < 10:
            if context.process() == qret.WAIT:
                context.wait()
        pair.standby.catch_up()
        pair.primary.kill()
        assert support.finish(context) == qret.ERR_CONNECTION
        assert context.retryable
        assert context.try_cycle()[0] == qret.ERR_CONNECTION  # nobody takes writes now
        pair.standby.promote()
        report = worlds.heal(context)
        assert report["consecutive_failures"] == 0 and report["segments_deleted"] > 0
        assert worlds.descriptors() <= before + 1
    copy = Database(pair.standby, pair.db.name)
    assert copy.one("SELECT count(*) FROM queen.log_segments") == 0
    assert worlds.audited(copy) == 200
    copy.close()
    assert len(ids) == 20


def test_demoted_server_is_left_for_the_new_primary(pair):
    """An open session whose server turns read-only: STANDBY, and the next cycle looks further.

    The setting reaches the session between two statements: in mid-cycle it is 25006, retryable.
    """
    worlds.fill(pair.db)
    pair.standby.catch_up()
    dsn = pair.dsn(pair.primary, pair.standby, target_session_attrs="read-write")
    with qret.Context(dsn, **LIMITS) as context:
        context.cycle()
        pair.standby.catch_up()
        pair.standby.promote()
        copy = Database(pair.standby, pair.db.name)
        worlds.refill(copy, [copy.one("SELECT id::text FROM queen.log_partitions LIMIT 1")])
        # What a demotion looks like to a session that survives it.
        pair.primary.admin("ALTER SYSTEM SET default_transaction_read_only = on")
        pair.primary.admin("SELECT pg_reload_conf()")
        found = []

        def left():
            outcome = context.try_cycle()[0]
            refused = outcome == qret.ERR_SQL
            found.append((context.sqlstate, context.retryable) if refused else outcome)
            return context.report()["segments_deleted"] > 0

        assert support.eventually(left, 20), found
        assert set(found) <= {qret.DONE, qret.STANDBY, ("25006", True)}
        assert copy.one("SELECT count(*) FROM queen.log_segments") == 0
        copy.close()
