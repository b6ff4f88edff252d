"""The partition clean-up: what vetoes, what goes with a partition, how a scan proceeds (L9)."""

import random
import uuid

import psycopg2
import pytest

from sql.log_support import DAY, Log, shown, source

HOUR = 3600
STATE_VETO = '"queen".retention_streams_state_v1(p.id, false) IS NOT NULL'
FILES = ("cleanup/log_partition_dead_v1.sql", "cleanup/retention_cleanup_lock_v1.sql")


@pytest.fixture
def log(db):
    return Log(db)


def holds_segment(log):
    pid = log.partition()
    log.segments(pid, [50 * DAY], sidecar=False)
    return pid


def holds_dead_letter(log):
    pid = log.partition()
    log.dead_letter(pid)
    return pid


def holds_state(log):
    pid = log.partition()
    log.state(pid)
    return pid


def with_consumer(created=90 * DAY, **ages):
    def build(log):
        pid = log.partition()
        log.consumer(pid, age=created, **{column: log.at(age) for column, age in ages.items()})
        return pid

    return build


def with_lease(log):
    pid = log.partition()
    log.consumer(pid, batch_end=9, worker_id="w", lease_expires_at=log.at(-HOUR))
    return pid


def with_lease_without_expiry(log):
    pid = log.partition()
    log.consumer(pid, batch_end=9, worker_id="w")
    return pid


# name: (how to build it, the age of the cutoff, the clause, what it is without that clause).
# The lease that expires in an hour is recent activity to every cutoff in the past, so its own clause
# shows only with one in the future.
VETOES = {
    "created inside the window": (
        lambda log: log.partition(age=29 * DAY),
        30 * DAY,
        "p.created_at < p_cutoff AND p.last_write_at < p_cutoff",
        "p.last_write_at < p_cutoff",
    ),
    "written to inside the window": (
        lambda log: log.partition(silent=29 * DAY),
        30 * DAY,
        "p.created_at < p_cutoff AND p.last_write_at < p_cutoff",
        "p.created_at < p_cutoff",
    ),
    "segment": (holds_segment, 30 * DAY, "s.partition_id = p.id", "false"),
    "dead letter": (holds_dead_letter, 30 * DAY, "d.partition_id = p.id", "false"),
    "streams state": (holds_state, 30 * DAY, STATE_VETO, "false"),
    "live lease": (with_lease, -2 * HOUR, "AND c.batch_end IS NOT NULL", "AND false"),
    "lease without expiry": (
        with_lease_without_expiry,
        30 * DAY,
        "AND c.batch_end IS NOT NULL",
        "AND false",
    ),
    "group created inside the window": (
        with_consumer(created=29 * DAY),
        30 * DAY,
        "c.created_at >= p_cutoff",
        "false",
    ),
    "lease acquired inside the window": (
        with_consumer(lease_acquired_at=29 * DAY),
        30 * DAY,
        "c.lease_acquired_at >= p_cutoff",
        "false",
    ),
    "lease expired inside the window": (
        with_consumer(lease_expires_at=29 * DAY),
        30 * DAY,
        "c.lease_expires_at >= p_cutoff",
        "false",
    ),
}


def mutate(log, clause, replacement):
    """Installs predicate and candidate scan without a clause."""
    for path in FILES:
        text = source(path)
        assert clause in text, f"{clause!r} is not in {path}"
        log.sql(text.replace(clause, replacement))


@pytest.mark.parametrize("name", VETOES)
@pytest.mark.parametrize("step", ["cleanup", "cleanup_v2"])
def test_L9_each_veto_keeps_its_partition_and_nothing_else_does(log, name, step):
    build, age, clause, replacement = VETOES[name]
    pid = build(log)
    assert log.dead(pid, age) is False
    assert getattr(log, step)(age)["deleted"] == 0
    assert log.exists(pid)
    mutate(log, clause, replacement)
    assert log.dead(pid, age) is True
    assert getattr(log, step)(age)["deleted"] == 1
    assert not log.exists(pid)


@pytest.mark.parametrize("name", VETOES)
def test_L9_the_predicate_alone_decides_too(log, name):
    """A candidate scan without the clause still spares it, by the second look."""
    build, age, clause, replacement = VETOES[name]
    pid = build(log)
    log.sql(source(FILES[1]).replace(clause, replacement))
    assert log.cleanup(age) == {"deleted": 0, "done": True}
    assert shown(log.cleanup_v2(age)) == {"deleted": 0, "last": None, "done": True}
    assert log.exists(pid)


def test_L9_what_is_no_veto(log):
    traced = log.partition()
    log.trace(traced)
    drained = log.partition(last_offset=99, log_start=100, txns_start=100)
    log.consumer(drained, committed=99, lease_acquired_at=log.at(70 * DAY))
    abandoned = log.partition()
    log.consumer(abandoned, batch_end=9, worker_id="w", lease_expires_at=log.at(31 * DAY))
    for pid in (traced, drained, abandoned):
        assert log.dead(pid) is True
    before = log.kept()
    assert shown(log.cleanup_v2()) == {"deleted": 3, "last": None, "done": True}
    assert log.kept() == before


def test_L3_L9_equality_is_kept(log):
    assert log.dead(log.partition(age=30 * DAY)) is False
    assert log.dead(log.partition(silent=30 * DAY)) is False
    assert log.dead(log.partition(age=30 * DAY + 1, silent=30 * DAY + 1)) is True
    for column in ("lease_acquired_at", "lease_expires_at"):
        pid = log.partition()
        log.consumer(pid, **{column: log.at(30 * DAY)})
        assert log.dead(pid) is False
    pid = log.partition()
    log.consumer(pid, age=30 * DAY)
    assert log.dead(pid) is False


def test_L9_there_is_no_answer_for_a_missing_partition(log):
    assert log.dead(str(uuid.UUID(int=5))) is None
    assert log.dead(None) is None


def test_L9_unknown_times_count_as_young(log):
    for column in ("created_at", "last_write_at"):
        assert log.dead(log.partition(**{column: None})) is False


def test_L9_a_segment_below_the_watermark_vetoes(log):
    """Rows restored by hand: a consumer would still read them, and the cascade would take them."""
    pid = log.partition(log_start=100)
    log.segments(pid, [50 * DAY], sidecar=False)
    assert log.dead(pid) is False
    assert log.cleanup() == {"deleted": 0, "done": True}
    assert log.cleanup_v2()["deleted"] == 0
    assert log.bases(pid) == [0]


def test_L9_what_goes_with_a_partition(log):
    pid, other = log.partition(), log.partition()
    for p in (pid, other):
        log.segments(p, [50 * DAY] * 3)
        log.consumer(p, committed=29)
    log.retain(pid, stale=DAY)
    log.sidecar(pid, 1000, 1009, 60 * DAY)
    assert log.cleanup() == {"deleted": 1, "done": True}
    assert not log.exists(pid)
    assert log.orphans() == 0
    assert log.bases(other, "log_txns") == [0, 10, 20]
    assert log.one("SELECT count(*) FROM {q}.log_consumers") == 1
    assert log.history(pid) == [("retention", 30), ("__partition_deleted__", 0)]
    assert log.history(other) == []


def test_L9_a_batch_takes_the_lowest_ids(log):
    pids = log.partitions(5)
    assert log.cleanup(rows=2) == {"deleted": 2, "done": False}
    assert log.alive() == pids[2:]
    assert log.cleanup(rows=2) == {"deleted": 2, "done": False}
    assert log.cleanup(rows=2) == {"deleted": 1, "done": True}
    assert log.cleanup(rows=2) == {"deleted": 0, "done": True}


@pytest.mark.parametrize("rows", [None, 0, -1, -2147483648])
def test_L1_L9_an_absurd_batch_counts_as_one(log, rows):
    log.partitions(3)
    assert log.cleanup(rows=rows)["deleted"] == 1
    assert log.cleanup_v2(rows=rows)["deleted"] == 1


def test_L9_the_cursor_goes_through_the_table_once(log):
    pids = log.partitions(5)
    log.dead_letter(pids[1])
    first = log.cleanup_v2(rows=2)
    assert shown(first) == {"deleted": 2, "last": pids[2], "done": False}
    second = log.cleanup_v2(rows=2, after=first["last"])
    assert shown(second) == {"deleted": 2, "last": pids[4], "done": False}
    third = log.cleanup_v2(rows=2, after=second["last"])
    assert shown(third) == {"deleted": 0, "last": None, "done": True}
    assert log.alive() == [pids[1]]


def test_L9_the_extreme_ids_are_partitions_too(log):
    low, high = str(uuid.UUID(int=0)), str(uuid.UUID(int=2**128 - 1))
    log.partition(pid=low)
    log.partition(pid=high)
    assert shown(log.cleanup_v2(rows=1)) == {"deleted": 1, "last": low, "done": False}
    assert shown(log.cleanup_v2(rows=1, after=low)) == {"deleted": 1, "last": high, "done": False}
    assert shown(log.cleanup_v2(rows=1, after=high)) == {"deleted": 0, "last": None, "done": True}


def test_L9_B49_vetoed_partitions_in_front_hide_nothing(log):
    pids = log.partitions(5001)
    log.sql(
        "INSERT INTO {q}.log_dlq (partition_id) SELECT id FROM {q}.log_partitions WHERE id < %s",
        pids[-1],
    )
    first = log.cleanup_v2(rows=100)
    assert shown(first) == {"deleted": 0, "last": pids[1999], "done": False}
    assert log.cleanup_round(rows=100) == 1
    assert len(log.alive()) == 5000
    assert not log.exists(pids[-1])


def test_L9_v1_needs_no_cursor_to_get_past_vetoes(log):
    pids = log.partitions(50)
    for pid in pids[:-1]:
        log.dead_letter(pid)
    assert log.cleanup(rows=10) == {"deleted": 1, "done": True}
    assert log.alive() == pids[:-1]


def test_L9_a_large_sidecar_ends_a_batch_early(log):
    """The deduplication window can be the longer one; a transaction still stays bounded."""
    pids = log.partitions(4)
    log.sql(
        "INSERT INTO {q}.log_txns SELECT p.id, n, n, %s, 'x'"
        " FROM {q}.log_partitions AS p, generate_series(1, 6000) AS n",
        log.at(50 * DAY),
    )
    first = log.cleanup_v2()
    assert shown(first) == {"deleted": 2, "last": pids[1], "done": False}
    assert log.cleanup_v2(after=first["last"])["deleted"] == 2
    assert log.orphans() == 0 == log.one("SELECT count(*) FROM {q}.log_txns")


def test_L9_v1_says_that_a_large_sidecar_ended_its_batch(log):
    log.partitions(3)
    log.sql(
        "INSERT INTO {q}.log_txns SELECT p.id, n, n, %s, 'x'"
        " FROM {q}.log_partitions AS p, generate_series(1, 6000) AS n",
        log.at(50 * DAY),
    )
    assert log.cleanup() == {"deleted": 2, "done": False}
    assert log.cleanup() == {"deleted": 1, "done": True}


def test_B91_a_batch_takes_few_locks_of_the_lock_table(log):
    queue = log.queue()
    log.sql(
        "INSERT INTO {q}.log_partitions (queue_id, name, created_at, last_write_at)"
        " SELECT %s, n::text, %s, %s FROM generate_series(1, 2000) AS n",
        queue,
        log.at(90 * DAY),
        log.at(80 * DAY),
    )
    log.sql(
        "INSERT INTO {q}.log_consumers (partition_id, created_at) SELECT id, %s FROM {q}.log_partitions",
        log.at(90 * DAY),
    )
    log.connection.autocommit = False
    assert log.cleanup_v2(rows=1500)["deleted"] == 1500
    assert log.one("SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid()") < 60
    log.connection.rollback()


def random_partition(log, dice):
    """One partition with each trait drawn at random, half of the draws harmless."""
    ages = [None, 90 * DAY, 90 * DAY, 90 * DAY, 30 * DAY, 29 * DAY]
    pid = log.partition(age=dice.choice(ages), silent=dice.choice(ages), queue=log.shared_queue)
    if dice.random() < 0.15:
        log.segments(pid, [dice.choice([50 * DAY, 0])], base=0)
    if dice.random() < 0.15:
        log.dead_letter(pid)
    if dice.random() < 0.15:
        log.state(pid)
    if dice.random() < 0.1:
        log.trace(pid)
    for group in range(dice.choice([0, 0, 1, 2])):
        log.consumer(
            pid,
            group=str(group),
            age=dice.choice([None, 90 * DAY, 90 * DAY, 30 * DAY, DAY]),
            batch_end=dice.choice([None, None, 9]),
            lease_acquired_at=log.at(dice.choice([None, None, 60 * DAY, 30 * DAY, DAY])),
            lease_expires_at=log.at(dice.choice([None, None, 60 * DAY, 30 * DAY, -HOUR])),
        )
    return pid


@pytest.mark.parametrize("seed", range(5))
def test_L9_candidate_scan_and_predicate_agree(log, seed):
    dice = random.Random(seed)
    log.shared_queue = log.queue()
    pids = sorted(random_partition(log, dice) for _ in range(120))
    for age in (30 * DAY, 45 * DAY, -2 * HOUR):
        dead = [pid for pid in pids if log.dead(pid, age)]
        log.connection.autocommit = False
        found = log.one(
            "SELECT ids::text[] FROM {q}.retention_cleanup_lock_v1(%s, NULL, NULL, 1000)",
            log.at(age),
        )
        log.connection.rollback()
        log.connection.autocommit = True
        assert (found or []) == dead
        assert 0 < len(dead) < len(pids)


def test_L9_the_window_is_counted_in_no_time_zone(log):
    log.sql("SET timezone = 'Europe/Rome'")
    pid = log.partition(age=200 * DAY, silent=200 * DAY)
    assert log.dead(pid, 200 * DAY) is False
    assert log.dead(pid, 200 * DAY - 0.001) is True


def test_L11_the_cleanup_with_a_cursor_wants_read_committed(log):
    pid = log.partition()
    for level in ("REPEATABLE READ", "SERIALIZABLE"):
        log.sql(f"SET default_transaction_isolation = '{level.lower()}'")
        with pytest.raises(psycopg2.Error) as caught:
            log.cleanup_v2()
        assert caught.value.pgcode == "QR004"
        assert "READ COMMITTED" in caught.value.diag.message_hint
    assert log.exists(pid)
    log.sql("SET default_transaction_isolation = 'read uncommitted'")
    assert log.cleanup_v2()["deleted"] == 1


@pytest.mark.parametrize("call", ["cleanup", "cleanup_v2"])
def test_L9_a_streams_engine_that_went_is_refused(log, call):
    pid = log.partition()
    log.sql("DROP SCHEMA {s} CASCADE")
    with pytest.raises(psycopg2.Error) as caught:
        getattr(log, call)()
    assert caught.value.pgcode == "QR003"
    assert "again" in caught.value.diag.message_hint
    assert log.exists(pid)


def outlived(log, pid):
    """What a row that came too late leaves behind: its partition is gone and it is not."""
    log.sql("DELETE FROM {q}.log_partitions WHERE id = %s", pid)
    return pid


def test_L9_rows_that_outlived_their_partition_are_told_and_kept(log):
    pids = log.partitions(6, age=DAY)
    for pid in pids[:4]:
        log.dead_letter(pid)
    log.dead_letter(pids[1])
    log.state(pids[1])
    log.state(pids[4])
    for pid in (pids[1], pids[3], pids[4], pids[5]):
        outlived(log, pid)
    before = log.kept()
    answer = log.cleanup_v2()
    assert (answer["orphans"], answer["orphan"]) == (3, pids[1])
    assert log.kept() == before
    assert log.one("SELECT count(*) FROM {s}.state") == 2


def test_L9_each_orphan_is_told_once_a_round(log):
    """By the step whose stretch of ids it lies in, whether or not anything goes there."""
    pids = log.partitions(9)
    for pid in pids[::2]:
        log.dead_letter(outlived(log, pid))
    found, after = [], None
    while True:
        answer = log.cleanup_v2(rows=1, after=after)
        found.append(answer["orphans"])
        after = answer["last"]
        if answer["done"]:
            break
    assert sum(found) == 5
    assert log.alive() == []
    assert len(found) == 5


def test_L9_many_rows_of_one_orphan_cost_as_much_as_one(log):
    pid = outlived(log, log.partition())
    log.sql(
        "INSERT INTO {q}.log_dlq (partition_id) SELECT %s FROM generate_series(1, 20000)", pid
    )
    log.sql("ANALYZE")
    call = "SELECT * FROM {q}.retention_orphans_v1(NULL, NULL)"
    assert log.sql(call) == [(1, pid)]
    plan = log.one(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {call}")[0]["Plan"]
    assert plan["Shared Hit Blocks"] + plan["Shared Read Blocks"] < 20


# --- what cannot be deleted ---------------------------------------------------------------------


def hold_by_reference(log, pids, deferred=""):
    log.sql(
        "CREATE TABLE IF NOT EXISTS public.note"
        f" (id uuid REFERENCES {{q}}.log_partitions {deferred})"
    )
    log.sql("INSERT INTO public.note SELECT unnest(%s::uuid[])", pids)


def hold_by_deferred_reference(log, pids):
    hold_by_reference(log, pids, "DEFERRABLE INITIALLY DEFERRED")


def hold_by_trigger(log, pids):
    log.sql(
        "CREATE FUNCTION public.keep() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RETURN CASE WHEN OLD.id::text = ANY (TG_ARGV) THEN NULL ELSE OLD END; END $$"
    )
    log.sql(
        "CREATE TRIGGER keep BEFORE DELETE ON {q}.log_partitions FOR EACH ROW"
        f" EXECUTE FUNCTION public.keep({', '.join(repr(pid) for pid in pids)})"
    )


@pytest.mark.parametrize("hold", [hold_by_reference, hold_by_deferred_reference, hold_by_trigger])
@pytest.mark.parametrize("held", [[0], [7], [3, 4], list(range(1, 8)), [0, 2, 5, 7]])
def test_L9_what_a_host_holds_on_to_keeps_itself_alone(log, hold, held):
    pids = sorted(log.partition() for _ in range(8))
    for pid in pids:
        log.segments(pid, [50 * DAY])
    log.sql("DELETE FROM {q}.log_segments")
    log.sql("UPDATE {q}.log_partitions SET log_start = last_offset + 1")
    kept = [pids[at] for at in held]
    hold(log, kept)
    answer = log.cleanup_v2()
    assert (answer["deleted"], answer["failed"], answer["done"]) == (8 - len(kept), len(kept), True)
    assert kept[0] in answer["failure"]
    assert log.alive() == kept
    assert len(log.sql("SELECT 1 FROM {q}.log_txns")) == len(kept)
    for pid in pids:
        assert bool(log.history(pid)) is (pid not in kept)
    with pytest.raises(psycopg2.Error):
        log.cleanup()


def test_L9_what_cannot_be_deleted_hides_nothing_behind_it(log):
    """A batch ends early where much of it fails, and the cursor goes on behind that."""
    pids = sorted(log.partition() for _ in range(150))
    hold_by_reference(log, pids[:140])
    assert log.cleanup_round(rows=100) == 10
    assert log.alive() == pids[:140]
