"""The second steps do what the contract's steps do, count what they did, and leave no trace
(L23).
"""

import random

import psycopg2
import pytest

from sql.log_support import DAY, Log
from sql.log_v2_support import Steps, client

SEEDS = 60


@pytest.fixture
def log(db):
    return Log(db)


@pytest.fixture
def steps(log):
    return Steps(log)


def random_log(log, rng):
    """One partition built twice: ages mostly fall with the offset, as clocks mostly go forwards."""
    count = rng.choice([rng.randint(0, 25), rng.randint(0, 25), rng.randint(30, 90)])
    sizes = [rng.randint(1, 9) for _ in range(count)]
    ages = sorted((rng.randint(0, 60) * DAY for _ in sizes), reverse=True)
    for _ in range(rng.choice([0, 0, 1, 3])):
        if ages:
            ages[rng.randrange(len(ages))] = rng.randint(-2, 60) * DAY
    last = sum(sizes)
    groups = [(f"g{n}", rng.randint(-1, last)) for n in range(rng.randint(0, 3))]
    pids = []
    for _ in range(2):
        pid = log.partition()
        base = 0
        for size, age in zip(sizes, ages):
            base = log.segments(pid, [age], size=size, base=base)
        for group, committed in groups:
            log.consumer(pid, committed, group)
        pids.append(pid)
    return pids


@pytest.mark.parametrize("group", range(4))
def test_L23_both_versions_answer_alike_step_by_step(log, steps, group):
    for seed in range(group, SEEDS, 4):
        answer_alike(log, steps, random.Random(seed))


def answer_alike(log, steps, rng):
    first, second = random_log(log, rng)
    for _ in range(3):
        stale = rng.choice([None, rng.randint(0, 60) * DAY])
        completed = rng.choice([None, rng.randint(0, 60) * DAY])
        rows = rng.choice([None, -1, 0, 1, 2, 3, 7, 40, 60, 1000, 1000])
        for call, ages in (
            (steps.retain, (stale, completed)),
            (steps.purge, (stale,)),
            (steps.evict, (completed,)),
        ):
            for _ in range(100):
                left = call(1, first, *ages, rows)
                right = call(2, second, *ages, rows)
                assert left == right
                assert log.bases(first) == log.bases(second)
                if left["done"]:
                    break
            assert left["done"]
    assert log.history(first) == log.history(second)
    for column in ("log_start", "txns_start"):
        assert log.watermark(first, column) == log.watermark(second, column)


def test_L23_the_keys_are_the_contract_s(log, steps):
    pid = log.partition()
    assert steps.retain(2, pid, 1) == {"deleted": 0, "new_log_start": 0, "done": True}
    assert steps.evict(2, pid, 1) == {"deleted": 0, "new_log_start": 0, "done": True}
    assert steps.purge(2, pid, 1) == {"deleted": 0, "new_txns_start": 0, "done": True}


def test_L1_a_partition_that_is_gone_is_done(steps):
    gone = "00000000-0000-4000-8000-000000000000"
    assert steps.retain(2, gone, 1, 1) == {"deleted": 0, "new_log_start": 0, "done": True}
    assert steps.purge(2, gone, 1) == {"deleted": 0, "new_txns_start": 0, "done": True}


def test_L2_rules_that_are_off_delete_nothing(log, steps):
    pid = log.partition()
    log.segments(pid, [50 * DAY] * 3)
    log.consumer(pid, 100)
    assert steps.retain(2, pid)["deleted"] == 0
    assert steps.evict(2, pid, None)["deleted"] == 0
    assert steps.purge(2, pid, None)["deleted"] == 0
    assert len(log.bases(pid)) == 3


def test_L7_a_batch_of_more_messages_than_int4_is_audited_as_what_fits(log, steps):
    pid = log.partition()
    log.segments(pid, [50 * DAY], size=3_000_000_000)
    assert steps.retain(2, pid, DAY)["new_log_start"] == 3_000_000_000
    assert log.history(pid) == [("retention", 2147483647)]


@pytest.mark.parametrize("rows", [1, 1000])
def test_L23_nothing_to_delete_writes_nothing(log, steps, rows):
    """Not even a lock: no transaction id is assigned."""
    pid = log.partition()
    log.segments(pid, [5 * DAY] * 3)
    log.consumer(pid, 5)
    log.connection.autocommit = False
    for call in (
        lambda: steps.retain(2, pid, 10 * DAY, 2 * DAY, rows),
        lambda: steps.evict(2, pid, 10 * DAY, rows),
        lambda: steps.purge(2, pid, 10 * DAY, rows),
    ):
        assert call()["deleted"] == 0
        assert log.one("SELECT pg_current_xact_id_if_assigned() IS NULL")
        log.connection.rollback()


@pytest.mark.parametrize("level", ["REPEATABLE READ", "SERIALIZABLE"])
def test_L11_another_isolation_level_is_refused(log, level):
    pid = log.partition()
    log.segments(pid, [50 * DAY])
    for call in (
        "log_retention_step_v2(%s, now(), NULL, 10)",
        "log_evict_max_wait_step_v2(%s, now(), 10)",
        "log_txns_purge_step_v2(%s, now(), 10)",
    ):
        log.sql(f"BEGIN ISOLATION LEVEL {level}")
        with pytest.raises(psycopg2.Error) as failure:
            log.sql(f"SELECT {{q}}.{call}", pid)
        log.sql("ROLLBACK")
        assert failure.value.pgcode == "QR004"
        assert "READ COMMITTED" in failure.value.diag.message_hint
    assert len(log.bases(pid)) == 1


def test_L12_settings_are_put_back_inside_a_host_s_transaction(log, steps):
    pid = log.partition()
    log.segments(pid, [50 * DAY] * 3)
    names = ("lock_timeout", "enable_seqscan", "enable_bitmapscan", "enable_sort", "jit")
    names += ("plan_cache_mode", "search_path")
    log.connection.autocommit = False
    log.sql("SET LOCAL lock_timeout = '7s'")
    before = [log.one(f"SHOW {name}") for name in names]
    assert steps.retain(2, pid, DAY, rows=1)["deleted"] == 1
    assert steps.purge(2, pid, DAY, rows=1)["deleted"] == 1
    assert steps.retain(2, pid, DAY, rows=0)["deleted"] == 1
    assert [log.one(f"SHOW {name}") for name in names] == before
    log.connection.commit()
    assert log.one("SHOW lock_timeout") == "0"


def test_L12_settings_are_put_back_when_a_step_is_lost(db, log, steps):
    pid = log.partition()
    log.segments(pid, [50 * DAY] * 3)
    other = db.connect(autocommit=False)
    with other.cursor() as cursor:
        cursor.execute("SELECT 1 FROM queen.log_partitions WHERE id = %s FOR UPDATE", (pid,))
    log.connection.autocommit = False
    log.sql("SET LOCAL qretention.late_lock_ms = '20'")
    log.sql("SAVEPOINT before")
    with pytest.raises(psycopg2.Error) as failure:
        steps.retain(2, pid, DAY)
    assert failure.value.pgcode == "QR001"
    log.sql("ROLLBACK TO before")
    assert log.one("SHOW lock_timeout") == "0"
    log.connection.rollback()
    other.close()


def test_L14_a_cutoff_in_the_future_is_refused_by_the_guard_alone(log):
    pid = log.partition()
    log.segments(pid, [50 * DAY] * 2)
    future = log.one("SELECT now() + interval '1 hour'")
    refused = (0, 0, -1, False, True)
    for version in (1, 2):
        for name, args in (
            ("retention", (pid, future, None, 1)),
            ("retention", (pid, None, future, 1)),
            ("max_wait", (pid, future, 1)),
            ("txns", (pid, future, 1)),
        ):
            row = client(log, f"step_{name}_v{version}.sql", *args, True)[0]
            assert row[:4] + row[5:] == refused, (version, name)
    assert len(log.bases(pid)) == 2 and len(log.bases(pid, "log_txns")) == 2
    assert client(log, "step_retention_v2.sql", pid, future, None, 1, False)[0][0] == 1


@pytest.mark.parametrize("version", [1, 2])
def test_L23_the_library_s_statements_count_segments_messages_and_time(log, version):
    pid = log.partition()
    log.segments(pid, [50 * DAY] * 5, size=10)
    log.consumer(pid, 19)
    row = client(log, f"step_retention_v{version}.sql", pid, None, log.at(DAY), 1, True)[0]
    assert row[:4] == (1, 10, 10, False) and 0 < row[4] < 60_000_000 and row[5] is False
    row = client(log, f"step_retention_v{version}.sql", pid, None, log.at(DAY), 9, True)[0]
    assert row[:4] == (1, 10, 20, True)
    row = client(log, f"step_max_wait_v{version}.sql", pid, log.at(DAY), 2, True)[0]
    assert row[:4] == (2, 20, 40, False)
    row = client(log, f"step_txns_v{version}.sql", pid, log.at(DAY), 9, True)[0]
    assert row[:4] == (5, 50, 50, True)


@pytest.mark.parametrize("version", [1, 2])
def test_L20_a_trigger_that_keeps_rows_is_done(log, steps, version):
    """The contract's word for a step that deleted nothing, so that no caller's loop spins."""
    pid = log.partition()
    log.segments(pid, [50 * DAY] * 3)
    log.sql(
        "CREATE FUNCTION {q}.keep() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$"
    )
    for table in ("log_segments", "log_txns"):
        log.sql(
            f"CREATE TRIGGER keep BEFORE DELETE ON {{q}}.{table} FOR EACH ROW"
            " EXECUTE FUNCTION {q}.keep()"
        )
    kept = {"deleted": 0, "new_log_start": 0, "done": True}
    assert steps.retain(version, pid, DAY) == kept == steps.evict(version, pid, DAY)
    assert steps.purge(version, pid, DAY) == {"deleted": 0, "new_txns_start": 0, "done": True}
    assert log.history(pid) == []
