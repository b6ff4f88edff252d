"""L13 to L15 and B16: one transaction a step, one clock a cycle, cutoffs that no setting bends."""

import datetime
import time

import pytest

from cycle import support
from pg import bulk, qret
from pg.broker import to_us


def test_transaction_step_is_its_own(db):
    """L13, B16: no transaction holds two steps, and none deletes more than the batch."""
    bulk.backlog(db, 6, 25)
    for table in ("log_segments", "log_txns"):
        support.spy_on_deletes(db, table)
    with qret.Context(db.dsn, batch_size=10) as context:
        report = context.cycle()
    assert report["segments_deleted"] == 150
    assert report["txns_purged"] == 0
    seen = support.deletes(db)
    assert sum(rows for _, rows, _, _, _ in seen) == 150
    assert len({xid for xid, *_ in seen}) == len(seen) >= 15
    assert all(rows <= 10 and partitions == 1 for _, rows, partitions, _, _ in seen)


def test_transaction_of_sidecar_is_bounded_too(db):
    bulk.backlog(db, 3, 25, age_seconds=2 * support.HOUR)
    support.spy_on_deletes(db, "log_txns")
    with qret.Context(db.dsn, batch_size=10) as context:
        assert context.cycle()["txns_purged"] == 75
    seen = support.deletes(db, "log_txns")
    assert len({xid for xid, *_ in seen}) == len(seen)
    assert all(rows <= 10 and partitions == 1 for _, rows, partitions, _, _ in seen)


def test_transaction_none_left_open_between_calls(db):
    """L13: whenever the host has control, no session of ours sits idle in a transaction."""
    bulk.backlog(db, 2, 4)
    states = set()
    with qret.Context(db.dsn, batch_size=2) as context:
        context.begin()
        while (code := context.process()) in (qret.MORE, qret.WAIT):
            if code == qret.WAIT:
                context.wait()
            time.sleep(0.01)
            states |= {state for _, state in support.others(db)}
        assert code == qret.DONE
    assert "idle" in states
    assert not {state for state in states if state and "transaction" in state}


@pytest.mark.parametrize("isolation", ["serializable", "repeatable read"])
def test_transaction_is_read_committed_whatever_the_default(db, isolation):
    """L11, L13"""
    db.sql(f"ALTER DATABASE \"{db.name}\" SET default_transaction_isolation = '{isolation}'")
    bulk.backlog(db, 2, 4)
    support.spy_on_deletes(db)
    with qret.Context(db.dsn) as context:
        assert context.cycle()["segments_deleted"] == 8
    assert {isolation for _, _, _, isolation, _ in support.deletes(db)} == {"read committed"}


def spy_on_cutoffs(db):
    """The foreign step records what it was called with."""
    db.sql("CREATE TABLE public.calls (pid uuid, every timestamptz, completed timestamptz)")
    db.sql("ALTER FUNCTION queen.log_retention_step_v1 RENAME TO inner_step")
    db.sql(
        """CREATE FUNCTION queen.log_retention_step_v1(p_pid uuid, p_all_cutoff timestamptz,
            p_completed_cutoff timestamptz, p_max_rows int, p_history_type text DEFAULT NULL)
        RETURNS jsonb LANGUAGE plpgsql AS $$
        BEGIN
            INSERT INTO public.calls (pid, every, completed)
            VALUES (p_pid, p_all_cutoff, p_completed_cutoff);
            PERFORM pg_sleep(0.02);
            RETURN queen.inner_step(p_pid, p_all_cutoff, p_completed_cutoff, p_max_rows,
                p_history_type);
        END $$"""
    )


@pytest.fixture
def foreign_db(cluster):
    db = support.foreign_database(cluster)
    yield db
    cluster.close_connections()
    db.drop()


def test_clock_is_one_for_the_cycle(foreign_db):
    """L14: every cutoff is the cycle's clock less the queue's window, to the microsecond."""
    bulk.backlog(foreign_db, 5, 2)
    spy_on_cutoffs(foreign_db)
    with qret.Context(foreign_db.dsn) as context:
        before = to_us(foreign_db.one("SELECT now()"))
        report = context.cycle()
        after = to_us(foreign_db.one("SELECT now()"))
    assert before <= report["clock_us"] <= after - 200_000
    cutoffs = {to_us(row[0]) for row in foreign_db.sql("SELECT every FROM public.calls")}
    assert cutoffs == {report["clock_us"] - 60_000_000}


@pytest.mark.parametrize("zone", ["UTC", "Europe/Rome", "America/Sao_Paulo", "Asia/Kathmandu"])
@pytest.mark.parametrize("style", ["ISO, MDY", "SQL, DMY", "German", "Postgres, MDY"])
def test_cutoffs_ignore_date_style_and_time_zone(foreign_db, zone, style):
    """L15"""
    settings = {"timezone": zone, "datestyle": style, "intervalstyle": "sql_standard"}
    for name, value in settings.items():
        foreign_db.sql(f"ALTER DATABASE \"{foreign_db.name}\" SET {name} = '{value}'")
    bulk.backlog(
        foreign_db,
        1,
        2,
        retention_enabled=True,
        retention_seconds=200 * support.DAY + 7,
        completed_retention_seconds=61,
    )
    spy_on_cutoffs(foreign_db)
    with qret.Context(foreign_db.dsn) as context:
        clock = context.cycle()["clock_us"]
    seconds = 1_000_000
    calls = foreign_db.sql("SELECT DISTINCT every, completed FROM public.calls")
    wanted = (clock - (200 * support.DAY + 7) * seconds, clock - 61 * seconds)
    assert [tuple(map(to_us, row)) for row in calls] == [wanted]


def test_cutoff_at_the_edge_of_time(db):
    """A cutoff given by hand reaches the server as it is; equality is kept (L3)."""
    queue_id, ids = bulk.backlog(db, 1, 3)
    stamp = db.one("SELECT min(created_at) FROM queen.log_segments")
    with qret.Context(db.dsn) as context:
        item = qret.work_item(ids[0], queue_id, all=to_us(stamp))
        assert context.step(qret.PHASE_RETENTION, item)["rows_deleted"] == 0
        later = stamp + datetime.timedelta(microseconds=1)
        item = qret.work_item(ids[0], queue_id, all=to_us(later))
        result = context.step(qret.PHASE_RETENTION, item)
    assert (result["rows_deleted"], result["done"], result["watermark"]) == (3, 1, 3)
    assert result["messages_deleted"] == 3
