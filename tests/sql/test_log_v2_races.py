"""The second steps beside everyone who takes the same locks, most of them the other way round
(L23).
"""

import time

import pytest

from pg.broker import Broker
from sql.log_support import DAY, Log
from sql.log_v2_support import LATE_MS, Beside, Steps, wait_until_blocked

STEP = "SELECT queen.log_retention_step_v2(%s, now() - interval '1 day', NULL, 1000)"
COMPLETED = "SELECT queen.log_retention_step_v2(%s, NULL, now() - interval '1 day', 1000)"
PURGE = "SELECT queen.log_txns_purge_step_v2(%s, now() - interval '1 day', 1000)"
LOCK = "SELECT 1 FROM queen.log_partitions WHERE id = %s FOR UPDATE"
SEGMENTS = "log_segments WHERE partition_id"
# A thread may be scheduled late; the deadlock detector would need a whole second.
LATE_SECONDS = (LATE_MS + 600) / 1000


@pytest.fixture
def log(db):
    return Log(db)


@pytest.fixture
def broker(db):
    return Broker(db)


@pytest.fixture
def pid(log):
    pid = log.partition()
    log.segments(pid, [50 * DAY] * 20)
    log.consumer(pid, 199)
    return pid


def assert_lost(step, code="QR001"):
    assert step.join().sqlstate == code, step.error or step.answer
    assert step.error.diag.message_hint


def left(log, pid):
    return len(log.bases(pid)), len(log.bases(pid, "log_txns")), log.watermark(pid)


@pytest.mark.parametrize("text", [STEP, PURGE])
def test_L23_a_step_yields_to_a_push_that_holds_on(db, log, broker, pid, text):
    with broker.transaction():
        broker.push(pid)
        step = Beside(db, text, pid)
        assert_lost(step)
        assert LATE_MS / 1000 <= step.seconds <= LATE_SECONDS
    assert left(log, pid) == (21, 21, 0)
    assert log.history(pid) == []


def test_L23_a_push_that_lets_go_in_time_delays_a_step_and_no_more(db, log, broker, pid):
    with broker.transaction():
        broker.push(pid)
        step = Beside(db, STEP, pid)
        wait_until_blocked(db)
    assert step.join().answer == {"deleted": 20, "new_log_start": 200, "done": True}
    assert left(log, pid)[0] == 1 and log.watermark(pid) == 200


@pytest.mark.parametrize(
    "settings, most",
    [
        (["SET qretention.late_lock_ms = '30'"], 0.03),
        (["SET deadlock_timeout = '60ms'"], 0.03),
        (["SET lock_timeout = '30ms'"], 0.03),
        (["SET qretention.late_lock_ms = '0'"], 0.0),
        (["SET qretention.late_lock_ms = 'soon'"], LATE_MS / 1000),
        (["SET qretention.late_lock_ms = ''"], LATE_MS / 1000),
    ],
)
def test_L23_the_late_wait_is_the_least_of_its_bounds(db, log, pid, settings, most):
    log.sql("BEGIN")
    log.sql(LOCK, pid)
    step = Beside(db, STEP, pid, settings=settings)
    assert_lost(step)
    assert most <= step.seconds <= most + 0.6
    log.sql("ROLLBACK")


def test_L23_what_the_delete_has_waited_is_not_waited_again(db, log, pid):
    rows = Log(db)
    for each, text in ((log, LOCK), (rows, LOCK.replace("log_partitions WHERE id", SEGMENTS))):
        each.sql("BEGIN")
        each.sql(text, pid)
    settings = ["SET qretention.late_lock_ms = '10000'", "SET deadlock_timeout = '3s'"]
    step = Beside(db, STEP, pid, settings=settings)
    wait_until_blocked(db)
    time.sleep(1)
    rows.sql("ROLLBACK")
    assert_lost(step)
    assert 1.4 <= step.seconds <= 2.3
    log.sql("ROLLBACK")


def test_L23_a_queue_drop_that_cascades_is_never_the_victim(db, log, pid):
    """The drop has the partition, the step the segments, and each wants the other's."""
    log.sql("BEGIN")
    log.sql(LOCK, pid)
    step = Beside(db, STEP, pid)
    wait_until_blocked(db)
    started = time.monotonic()
    log.sql("DELETE FROM {q}.queues")
    assert time.monotonic() - started <= LATE_SECONDS
    log.sql("COMMIT")
    assert_lost(step)
    assert not log.exists(pid) and log.bases(pid) == []


def test_L23_a_queue_drop_that_was_first_is_waited_for_no_longer_than_the_bound(db, log, pid):
    log.sql("BEGIN")
    log.sql("DELETE FROM {q}.queues")
    step = Beside(db, STEP, pid)
    assert_lost(step)
    assert step.seconds <= LATE_SECONDS
    log.sql("ROLLBACK")
    assert left(log, pid) == (20, 20, 0)


@pytest.mark.parametrize("version", [1, 2])
def test_L23_a_step_that_holds_the_rows_is_waited_for_no_longer_than_the_bound(
    db, log, pid, version
):
    steps = Steps(log)
    log.sql("BEGIN")
    assert steps.retain(version, pid, DAY, rows=5)["deleted"] == 5
    step = Beside(db, STEP, pid)
    assert_lost(step)
    log.sql("COMMIT")
    assert left(log, pid) == (15, 20, 50)


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("mine, theirs", [(5, 15), (20, 0), (1, 19)])
def test_L23_a_step_beside_another_counts_its_own_rows(db, log, pid, version, mine, theirs):
    steps = Steps(log)
    log.sql("BEGIN")
    assert steps.retain(version, pid, DAY, rows=mine)["deleted"] == mine
    step = Beside(db, STEP, pid)
    wait_until_blocked(db)
    log.sql("COMMIT")
    assert step.join().answer == {"deleted": theirs, "new_log_start": 200, "done": True}
    assert sum(messages for _, messages in log.history(pid)) == 200
    assert len(log.history(pid)) == (2 if theirs else 1)


def test_L23_a_step_beside_one_that_rolls_back_takes_everything(db, log, pid):
    log.sql("BEGIN")
    assert Steps(log).retain(1, pid, DAY, rows=5)["deleted"] == 5
    step = Beside(db, STEP, pid)
    wait_until_blocked(db)
    log.sql("ROLLBACK")
    assert step.join().answer["deleted"] == 20
    assert log.watermark(pid) == 200


@pytest.mark.parametrize(
    "committed, code", [(198, "QR006"), (-1, "QR006"), (199, None), (500, None)]
)
def test_L23_a_seek_into_the_batch_is_seen_under_the_lock(db, log, broker, pid, committed, code):
    log.sql("BEGIN")
    log.sql(LOCK, pid)
    step = Beside(db, COMPLETED, pid)
    wait_until_blocked(db)
    broker.seek(pid, "group", committed)
    log.sql("COMMIT")
    step.join()
    assert step.sqlstate == code
    assert left(log, pid)[0] == (20 if code else 0)
    assert log.watermark(pid) == (0 if code else 200)


def test_L23_a_group_that_begins_at_the_start_is_seen_under_the_lock(db, log, broker, pid):
    log.sql("BEGIN")
    log.sql("SELECT 1 FROM {q}.log_partitions WHERE id = %s FOR NO KEY UPDATE", pid)
    step = Beside(db, COMPLETED, pid)
    wait_until_blocked(db)
    broker.subscribe(pid, "new")
    log.sql("COMMIT")
    assert_lost(step, "QR006")


def test_L23_a_group_that_goes_away_is_seen_under_the_lock(db, log, broker, pid):
    log.sql("BEGIN")
    log.sql(LOCK, pid)
    step = Beside(db, COMPLETED, pid)
    wait_until_blocked(db)
    broker.unsubscribe(pid, "group")
    log.sql("COMMIT")
    assert_lost(step, "QR006")
    assert left(log, pid)[0] == 20


def test_L23_a_seek_means_nothing_to_what_rule_1_deletes(db, log, broker, pid):
    log.sql("BEGIN")
    log.sql(LOCK, pid)
    step = Beside(db, STEP.replace("NULL", "now() - interval '1 hour'"), pid)
    wait_until_blocked(db)
    broker.seek(pid, "group", -1)
    log.sql("COMMIT")
    assert step.join().answer["deleted"] == 20


def test_L23_a_pop_that_creates_its_consumer_row_holds_nobody_up(db, log, broker, pid):
    with broker.transaction():
        broker.subscribe(pid, "new", 500)
        step = Beside(db, STEP, pid).join()
        assert step.answer["deleted"] == 20 and step.seconds < LATE_MS / 1000


@pytest.mark.parametrize("text, floor", [(STEP, "segments_floor"), (PURGE, "txns_floor")])
def test_L23_who_is_at_the_floors_row_holds_no_step_up(db, log, pid, text, floor):
    """Pushes would wait behind it, for as long as the session's own lock_timeout says."""
    stored = f"SELECT {floor}, xmin::text FROM queen.retention_floors WHERE partition_id = %s"
    before = db.sql(stored, pid)
    other = db.connect(autocommit=False)
    with other.cursor() as cursor:
        cursor.execute(
            "SELECT 1 FROM queen.retention_floors WHERE partition_id = %s FOR UPDATE", (pid,)
        )
        step = Beside(db, text, pid, settings=["SET lock_timeout = '5s'"])
        answer = step.join().answer
        assert (answer["deleted"], answer["done"]) == (20, True)
        assert step.seconds <= LATE_SECONDS
        assert db.sql(stored, pid) == before
    other.rollback()
    log.segments(pid, [50 * DAY], base=200)
    assert Beside(db, text, pid).join().answer["deleted"] == 1
    assert db.sql(stored, pid) != before


def test_L23_the_sessions_own_lock_timeout_is_as_it_was(db, log, pid):
    step = db.connect()
    with step.cursor() as cursor:
        cursor.execute("SET lock_timeout = '7s'")
        for text in (STEP, PURGE):
            cursor.execute("BEGIN")
            cursor.execute(text, (pid,))
            cursor.execute("SELECT current_setting('lock_timeout')")
            assert cursor.fetchone()[0] == "7s"
            cursor.execute("COMMIT")


def test_L23_a_cleanup_spares_a_partition_whose_step_has_not_committed(db, log, pid):
    log.sql("UPDATE {q}.log_consumers SET created_at = now() - interval '90 days'")
    log.sql("BEGIN")
    assert Steps(log).retain(2, pid, DAY)["deleted"] == 20
    cleanup = Beside(
        db, "SELECT queen.log_partition_cleanup_step_v1(now() - interval '30 days', 10)"
    )
    assert cleanup.join().answer["deleted"] == 0
    log.sql("COMMIT")
    assert log.cleanup()["deleted"] == 1


def test_L23_a_cleanup_that_holds_the_partition_is_yielded_to(db, log):
    pid = log.partition()
    log.segments(pid, [50 * DAY])
    log.sql("BEGIN")
    log.sql(LOCK, pid)
    step = Beside(db, STEP, pid)
    wait_until_blocked(db)
    log.sql("DELETE FROM {q}.log_partitions WHERE id = %s", pid)
    log.sql("COMMIT")
    assert_lost(step)


def test_L23_pushes_beside_a_drain_never_see_an_error_nor_a_hole(db, log, broker, pid):
    """Both go for one partition as fast as they can; every message is deleted, or there."""
    end = log.segments(pid, [50 * DAY] * 2000, base=200)
    drain = Beside(
        db,
        "DO $$ DECLARE answer jsonb; BEGIN LOOP"
        f" answer := queen.log_retention_step_v2('{pid}', now() - interval '1 day', NULL, 50);"
        " COMMIT; EXIT WHEN (answer ->> 'done')::bool; END LOOP; END $$",
        settings=["SET qretention.late_lock_ms = '450'"],
    )
    while drain._thread.is_alive():
        assert broker.push(pid, 1)[0] is not None
    assert drain.join().error is None
    bases = log.bases(pid)
    assert bases and log.watermark(pid) == bases[0] == end
    assert bases == list(range(bases[0], bases[0] + len(bases)))


@pytest.mark.parametrize("seed", range(3))
def test_L23_steps_of_both_versions_side_by_side_count_each_segment_once(db, log, pid, seed):
    log.segments(pid, [50 * DAY] * 380, base=200)
    loop = (
        "DO $$ DECLARE answer jsonb; BEGIN LOOP BEGIN"
        f" answer := queen.log_retention_step_v%s('{pid}', now() - interval '1 day', NULL, %s);"
        " IF (answer ->> 'done')::bool THEN EXIT; END IF;"
        " EXCEPTION WHEN sqlstate 'QR001' THEN NULL; END; COMMIT; END LOOP; END $$"
    )
    kinds = ((1, 3), (2, 7), (2, 2 + seed))
    calls = [Beside(db, loop % kind) for kind in kinds]
    for call in calls:
        assert call.join().error is None
    assert left(log, pid) == (0, 400, 4000)
    assert sum(messages for _, messages in log.history(pid)) == 4000
