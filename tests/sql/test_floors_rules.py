"""Floors one by one: how they are filed, raised and lowered, and by whom they are written (L18)."""

import psycopg2
import pytest

from pg.broker import Broker
from sql.floors_client import Client, Cycle
from sql.floors_support import HOUR, UNKNOWN, cutoffs, floors, is_at, listed, states, writes
from sql.log_support import DAY, Log, source
from sql.log_v2_support import Beside, wait_until_blocked


@pytest.fixture
def log(db):
    return Log(db)


@pytest.fixture
def client(db):
    return Client(db)


@pytest.fixture
def broker(db):
    return Broker(db)


# --- the trigger ------------------------------------------------------------------------------


def test_L18_a_new_partition_is_unknown_and_asks_for_one_probe(log, client):
    pid = log.partition(queue=log.queue(retention_enabled=True, retention_seconds=DAY))
    assert floors(log, pid) == (UNKNOWN, UNKNOWN)
    item = listed(client)[pid]
    assert cutoffs(item) == []
    assert states(client.refresh([pid])) == {pid: "raised"}
    assert listed(client) == {}
    assert client.refresh([pid]) == []


def test_L18_every_partition_of_one_statement_is_filed(log):
    queue = log.queue()
    log.sql(
        "INSERT INTO {q}.log_partitions (queue_id, name) SELECT %s, n::text FROM"
        " generate_series(1, 50) n",
        queue,
    )
    assert log.one("SELECT count(*) FROM {q}.retention_floors WHERE queue_id = %s", queue) == 50


def test_L18_the_trigger_fires_for_a_session_that_applies_changes(log):
    queue = log.queue()
    log.sql("SET session_replication_role = replica")
    pid = log.partition(queue=queue)
    assert floors(log, pid) == (UNKNOWN, UNKNOWN)


def test_L18_a_row_left_by_a_partition_of_the_same_id_is_taken_over(log, client):
    pid = log.partition()
    client.refresh([pid])
    log.sql("UPDATE {q}.retention_floors SET pinned_since = now(), pinned_group = 'g'")
    log.sql("DELETE FROM {q}.log_partitions WHERE id = %s", pid)
    queue = log.queue()
    log.partition(pid=pid, queue=queue)
    columns = ("segments_floor", "txns_floor", "queue_id", "pinned_since", "pinned_group")
    assert floors(log, pid, *columns) == (UNKNOWN, UNKNOWN, queue, None, None)


def test_L18_a_role_that_may_only_insert_partitions_needs_no_grant_of_ours(db, log):
    queue = log.queue()
    role = f"pusher_{db.name}"
    log.sql(f"CREATE ROLE {role}")
    log.sql(f"GRANT USAGE ON SCHEMA {{q}} TO {role}")
    log.sql(f"GRANT INSERT, SELECT ON {{q}}.log_partitions TO {role}")
    log.sql(f"GRANT SELECT ON {{q}}.queues TO {role}")
    try:
        log.sql(f"SET ROLE {role}")
        pid = log.partition(queue=queue)
        with pytest.raises(psycopg2.errors.InsufficientPrivilege):
            log.sql("SELECT 1 FROM {q}.retention_floors")
        log.sql("RESET ROLE")
        assert floors(log, pid) == (UNKNOWN, UNKNOWN)
    finally:
        log.sql("RESET ROLE")
        log.sql(f"DROP OWNED BY {role}")
        log.sql(f"DROP ROLE {role}")


@pytest.mark.parametrize(
    "harm",
    [
        "DROP TABLE {q}.retention_floors",
        "ALTER TABLE {q}.retention_floors ADD CONSTRAINT never CHECK (false) NOT VALID",
        "ALTER TABLE {q}.retention_floors RENAME COLUMN look_xid TO other",
    ],
)
def test_L18_a_push_never_fails_for_the_trigger(log, broker, harm):
    log.sql(harm)
    queue = log.queue()
    pid = broker.partition(queue, "new")
    assert broker.push(pid)[0] == 0


def test_L18_a_push_never_waits_longer_for_the_trigger_than_its_own_lock_timeout(db, log, broker):
    pid = log.partition()
    log.sql("DELETE FROM {q}.log_partitions WHERE id = %s", pid)
    queue = log.queue()
    holder = db.connect(autocommit=False)
    with holder.cursor() as cursor:
        cursor.execute(
            "SELECT 1 FROM queen.retention_floors WHERE partition_id = %s FOR UPDATE", (pid,)
        )
    broker.sql("SET lock_timeout = '50ms'")
    assert broker.partition(queue, "again", pid) == pid
    holder.rollback()


def test_L18_the_one_function_that_runs_as_its_owner_pins_its_path(log):
    rows = log.sql(
        "SELECT p.proname::text, p.proconfig::text[] FROM pg_proc AS p WHERE p.prosecdef"
        " AND p.pronamespace = 'queen'::regnamespace"
    )
    assert rows == [("retention_floors_inserted_v1", ["search_path=pg_catalog, pg_temp"])]


# --- raising and lowering ---------------------------------------------------------------------


def test_L18_a_floor_is_the_date_of_what_is_first(log, client):
    pid = log.partition(queue=log.queue(retention_enabled=True, retention_seconds=90 * DAY))
    log.segments(pid, [50 * DAY, 3 * DAY])
    client.refresh([pid])
    assert is_at(log, pid, "segments_floor", 50 * DAY) and is_at(log, pid, "txns_floor", 50 * DAY)


def test_L18_a_head_dated_in_the_future_cannot_hide_a_partition(log, client):
    pid = log.partition(queue=log.queue(retention_enabled=True, retention_seconds=DAY))
    log.segments(pid, [-9 * DAY, 50 * DAY])
    report = client.refresh([pid])[0]
    assert report.future and not report.due
    assert log.one(
        "SELECT max(segments_floor) BETWEEN now() - interval '1 minute' AND now()"
        " FROM {q}.retention_floors"
    )


def test_L18_an_empty_partition_is_raised_to_now_under_its_lock(log, client):
    pid = log.partition()
    before = log.one("SELECT now()")
    assert states(client.refresh([pid])) == {pid: "raised"}
    low, high = log.sql("SELECT min(segments_floor), max(txns_floor) FROM {q}.retention_floors")[0]
    assert before <= low == high <= log.one("SELECT now()")


def test_L18_an_empty_partition_with_a_push_under_way_stays_unknown(log, broker, client):
    pid = log.partition(queue=log.queue(retention_enabled=True, retention_seconds=DAY))
    with broker.transaction():
        base, _, stamp = broker.push(pid)
        assert states(client.refresh([pid])) == {pid: "busy"}
        assert floors(log, pid) == (UNKNOWN, UNKNOWN)
        assert pid in listed(client)
    assert states(client.refresh([pid])) == {pid: "raised"}
    assert log.one(
        "SELECT f.segments_floor = s.created_at FROM {q}.retention_floors f"
        " JOIN {q}.log_segments s USING (partition_id)"
    )


def test_L18_a_push_that_commits_while_emptiness_is_decided_is_seen(db, log, broker, client):
    """It holds the lock at the first look and is over at the second: what counts is the second."""
    pid = log.partition()
    log.sql("ALTER FUNCTION {q}.retention_floors_look_v1 RENAME TO real_look")
    log.sql(
        "CREATE FUNCTION {q}.retention_floors_look_v1(a uuid[], b timestamptz, c uuid[])"
        " RETURNS SETOF record LANGUAGE plpgsql AS $$ BEGIN"
        " PERFORM pg_advisory_xact_lock(4711); RETURN QUERY SELECT * FROM {q}.real_look(a, b, c);"
        " PERFORM pg_sleep(0.3); END $$".replace(
            "RETURNS SETOF record",
            "RETURNS TABLE (partition_id uuid, queue_id uuid, segments_floor timestamptz,"
            " txns_floor timestamptz, look_xid bigint, pinned boolean, pinned_group text,"
            " pinned_offset bigint, changed boolean, needs_lock boolean, due boolean, future"
            " boolean,"
            " state text)",
        )
    )
    call = Beside(
        db, "SELECT state FROM queen.retention_floors_refresh_v1(ARRAY[%s]::uuid[], NULL)", pid
    )
    stamp = broker.push(pid)[2]
    assert call.join().answer in ("raised", "busy")
    pushed = log.one("SELECT created_at FROM {q}.log_segments")
    assert log.one("SELECT segments_floor <= %s FROM {q}.retention_floors", pushed), stamp


def test_L18_only_what_takes_a_partition_off_the_list_is_written(log, client):
    queue = log.queue(retention_enabled=True, retention_seconds=9 * DAY)
    pids = [log.partition(queue=queue) for _ in range(3)]
    log.segments(pids[0], [5 * DAY])
    client.refresh(pids)
    before = writes(log)
    assert client.refresh(pids) == [] and client.walk_round() == []
    assert writes(log) == before


def test_L18_an_idle_cycle_writes_nothing(log, client):
    queue = log.queue(retention_enabled=True, completed_retention_seconds=DAY)
    for age in (2 * HOUR, 3 * DAY):
        log.segments(log.partition(queue=queue), [age])
    cycle = Cycle(client)
    cycle.run()
    cycle.run()
    before = writes(log)
    for _ in range(5):
        assert cycle.run() == 0 and cycle.refreshed == 0 and cycle.pages <= 2
    assert writes(log) == before


def test_L18_a_step_raises_its_own_floor_in_its_own_transaction(log, client):
    pid = log.partition(queue=log.queue(retention_enabled=True, retention_seconds=9 * DAY))
    log.segments(pid, [50 * DAY] * 5 + [2 * DAY])
    client.refresh([pid])
    log.connection.autocommit = False
    assert log.one(
        "SELECT ({q}.log_retention_step_v2(%s, %s, NULL, 3) ->> 'done')::bool", pid, log.at(9 * DAY)
    ) is False
    assert is_at(log, pid, "segments_floor", 50 * DAY)
    log.one("SELECT {q}.log_retention_step_v2(%s, %s, NULL, 3)", pid, log.at(9 * DAY))
    assert is_at(log, pid, "segments_floor", 2 * DAY)
    assert is_at(log, pid, "txns_floor", 50 * DAY)
    log.one("SELECT {q}.log_txns_purge_step_v2(%s, %s, 10)", pid, log.at(9 * DAY))
    assert is_at(log, pid, "txns_floor", 2 * DAY)
    log.connection.rollback()
    assert is_at(log, pid, "segments_floor", 50 * DAY)


def test_L18_a_drained_partition_comes_up_again_a_window_later_and_not_before(log, client):
    pid = log.partition(queue=log.queue(retention_enabled=True, retention_seconds=9 * DAY))
    log.segments(pid, [50 * DAY] * 5, sidecar=False)
    cycle = Cycle(client)
    assert cycle.run() == 5
    assert listed(client) == {}
    later = log.one("SELECT now() + interval '9 days 1 minute'")
    assert cutoffs(listed(client, clock=later)[pid]) == ["all", "txns"]


def test_L18_restored_rows_are_found_by_the_walk(log, client):
    pid = log.partition(queue=log.queue(retention_enabled=True, retention_seconds=9 * DAY))
    Cycle(client).run()
    log.segments(pid, [50 * DAY])
    assert listed(client) == {}
    assert states(client.walk_round()) == {pid: "lowered"}
    assert cutoffs(listed(client)[pid]) == ["all", "txns"]


def test_L18_restored_rows_are_found_past_the_hints_of_a_running_library(log, client):
    pid = log.partition(queue=log.queue(retention_enabled=True, retention_seconds=9 * DAY))
    cycle = Cycle(client)
    cycle.run()
    assert cycle.hints
    log.segments(pid, [50 * DAY])
    assert cycle.run() == 0
    client.walk_round()
    assert cycle.run() == 2


def test_L18_partitions_inserted_without_the_trigger_are_added_by_the_walk(log, client):
    log.sql("ALTER TABLE {q}.log_partitions DISABLE TRIGGER retention_floors_inserted")
    queue = log.queue(retention_enabled=True, retention_seconds=9 * DAY)
    pids = sorted(log.partition(queue=queue) for _ in range(7))
    for pid in pids:
        log.segments(pid, [50 * DAY])
    assert listed(client) == {}
    added = [row.partition_id for row in client.walk_round(limit=3) if row.state == "added"]
    assert added == pids
    assert Cycle(client).run() == 14


def test_L18_a_row_is_not_removed_under_a_partition_made_again_at_that_moment(db, log):
    """It commits after the removal's snapshot and before the row is locked."""
    pid = log.partition()
    queue = log.one("SELECT queue_id FROM {q}.log_partitions WHERE id = %s", pid)
    log.sql("DELETE FROM {q}.log_partitions WHERE id = %s", pid)
    log.sql(
        "CREATE FUNCTION public.pause() RETURNS bool LANGUAGE plpgsql AS $$ BEGIN"
        " PERFORM pg_advisory_lock(1); PERFORM pg_advisory_unlock(1); RETURN true; END $$"
    )
    text = source("floors/retention_floors_refresh_v1.sql")
    clause = "WHERE x.partition_id = ANY (v_orphans)"
    assert text.count(clause) == 1
    log.sql(text.replace(clause, clause + " AND public.pause()"))
    log.sql("SELECT pg_advisory_lock(1)")
    refresh = Beside(db, "SELECT count(*) FROM queen.retention_floors_refresh_v1(ARRAY[%s::uuid])", pid)
    wait_until_blocked(db)
    log.partition(pid=pid, queue=queue)
    log.sql("SELECT pg_advisory_unlock(1)")
    assert refresh.join().error is None
    assert floors(log, pid) == (UNKNOWN, UNKNOWN)


def test_L18_rows_without_a_partition_are_removed_by_the_walk_and_by_the_list(log, client):
    queue = log.queue(retention_enabled=True, retention_seconds=9 * DAY)
    for _ in range(2):
        pid = log.partition(queue=queue)
        log.sql("DELETE FROM {q}.log_partitions WHERE id = %s", pid)
    item = listed(client)[pid]
    assert item.queue_id is None and cutoffs(item) == []
    assert states(client.refresh([pid])) == {pid: "removed"}
    assert [row.state for row in client.walk_round()] == ["removed"]
    assert log.one("SELECT count(*) FROM {q}.retention_floors") == 0


def test_L18_a_clock_that_was_repaired_is_found_by_the_walk(log, client):
    pid = log.partition(queue=log.queue(retention_enabled=True, retention_seconds=DAY))
    client.refresh([pid])
    log.sql("UPDATE {q}.retention_floors SET segments_floor = now() + interval '9 days'")
    assert states(client.walk_round()) == {pid: "lowered"}
    assert log.one("SELECT segments_floor <= now() FROM {q}.retention_floors")


def test_L18_a_clock_that_stepped_back_hides_nothing_behind_a_head(log, client):
    pid = log.partition(
        queue=log.queue(
            retention_enabled=True, completed_retention_seconds=DAY, max_wait_time_seconds=9 * DAY
        )
    )
    log.segments(pid, [5 * DAY, 50 * DAY, HOUR], sidecar=False)
    log.consumer(pid, 9)
    cycle = Cycle(client)
    assert cycle.run() == 2
    assert log.bases(pid) == [20]


def test_L18_a_moved_partition_is_judged_by_its_own_queue(log, client):
    short = log.queue(retention_enabled=True, retention_seconds=DAY)
    long = log.queue(
        retention_enabled=True, retention_seconds=90 * DAY, dedup_window_seconds=90 * DAY
    )
    pid = log.partition(queue=short)
    log.segments(pid, [5 * DAY])
    client.refresh([pid])
    log.sql("UPDATE {q}.log_partitions SET queue_id = %s WHERE id = %s", long, pid)
    item = listed(client)[pid]
    assert (item.filed_under, item.queue_id, cutoffs(item)) == (short, long, [])
    assert Cycle(client).run() == 0
    assert floors(log, pid, "queue_id") == (long,)
    log.sql("UPDATE {q}.log_partitions SET queue_id = %s WHERE id = %s", short, pid)
    assert states(client.walk_round()) == {pid: "moved"}
    assert Cycle(client).run() == 2


def test_L18_a_partition_filed_under_a_queue_that_is_gone_is_found_past_the_hints(log, client):
    """Its old mark was passed over while no look could see it."""
    queues = [log.queue(retention_enabled=True, retention_seconds=DAY) for _ in range(2)]
    pid = log.partition(queue=queues[0])
    log.segments(pid, [5 * DAY])
    log.sql("UPDATE {q}.log_partitions SET queue_id = %s WHERE id = %s", queues[1], pid)
    log.sql("DELETE FROM {q}.queues WHERE id = %s", queues[0])
    cycle = Cycle(client)
    log.sql("SELECT pg_current_xact_id()")
    assert cycle.run() == 0
    assert states(client.walk_round()) == {pid: "moved"}
    assert cycle.run() == 2


@pytest.mark.parametrize("hinted", [False, True])
def test_L18_the_due_test_follows_the_policy_of_the_moment(log, client, hinted):
    queue = log.queue(
        retention_enabled=True, retention_seconds=90 * DAY, dedup_window_seconds=90 * DAY
    )
    pid = log.partition(queue=queue)
    log.segments(pid, [5 * DAY])
    cycle = Cycle(client)
    assert cycle.run() == 0 and cycle.hints
    for change, expected in (
        ("retention_seconds = 86400", 1),
        ("retention_seconds = 0, max_wait_time_seconds = 86400", 0),
        ("dedup_window_seconds = 0", 1),
    ):
        log.sql(f"UPDATE {{q}}.queues SET {change} WHERE id = %s", queue)
        assert cycle.run(full=not hinted) == expected, change


def test_L18_reset_forgets_at_once_and_says_how_many(log, client):
    queues = [log.queue(retention_enabled=True, retention_seconds=DAY) for _ in range(2)]
    pids = [log.partition(queue=queue) for queue in queues for _ in range(3)]
    cycle = Cycle(client)
    cycle.run()
    assert listed(client) == {}
    assert log.one("SELECT {q}.retention_floors_reset_v1(%s)", queues[0]) == 3
    assert set(listed(client, hints=cycle.hints)) == set(pids[:3])
    assert log.one("SELECT {q}.retention_floors_reset_v1()") == 6
    assert {floors(log, pid) for pid in pids} == {(UNKNOWN, UNKNOWN)}
    log.sql("DELETE FROM {q}.retention_floors WHERE partition_id = %s", pids[0])
    assert log.one("SELECT {q}.retention_floors_reset_v1(NULL)") == 6


def test_L18_a_reset_that_waits_for_a_refresh_is_not_undone_by_it(db, log, client):
    pid = log.partition()
    log.sql("BEGIN")
    log.sql("SELECT * FROM {q}.retention_floors_refresh_v1(ARRAY[%s]::uuid[])", pid)
    reset = Beside(db, "SELECT queen.retention_floors_reset_v1()")
    wait_until_blocked(db)
    log.sql("COMMIT")
    assert reset.join().answer == 1
    assert floors(log, pid) == (UNKNOWN, UNKNOWN)


@pytest.mark.parametrize("level", ["REPEATABLE READ", "SERIALIZABLE"])
def test_L11_a_refresh_is_refused_in_another_isolation_level(log, level):
    pid = log.partition()
    log.sql(f"BEGIN ISOLATION LEVEL {level}")
    with pytest.raises(psycopg2.Error) as failure:
        log.sql("SELECT {q}.retention_floors_refresh_v1(ARRAY[%s]::uuid[])", pid)
    assert failure.value.pgcode == "QR004"
