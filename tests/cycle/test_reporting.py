"""L21 and L22: what a cycle says, how often, and when the next one is due."""

import time

from cycle import support
from pg import bulk, qret

MS = 1000


def test_swept_names_what_went(db):
    """L21: info, with every count, only for a cycle that deleted something."""
    bulk.backlog(db, 2, 3, age_seconds=2 * support.HOUR)
    evicting = bulk.queue(db, "evicting", max_wait_time_seconds=60)
    bulk.segments(db, bulk.partitions(db, evicting, 1), 4, support.HALF_HOUR)
    bulk.partitions(db, bulk.queue(db, "empty"), 1, 40 * support.DAY)
    with qret.Context(db.dsn) as context:
        report = context.cycle()
        (line,) = context.events("swept")
    assert line.level == qret.LOG_INFO
    fields = dict(pair.split("=", 1) for pair in line.text.split() if "=" in pair)
    wanted = {
        "segments_deleted": 6,
        "txns_purged": 6,
        "max_wait_evicted": 4,
        "partitions_deleted": 1,
    }
    for name, value in wanted.items():
        assert report[name] == value
        assert fields[name] == str(value)
    assert {"queues", "elapsed_ms"} <= set(fields)
    assert "\n" not in line.text


def test_idle_cycle_is_for_debugging(db):
    bulk.partitions(db, bulk.queue(db), 3)
    with qret.Context(db.dsn) as context:
        context.cycle()
        assert [line.level for line in context.events("idle")] == [qret.LOG_DEBUG]
        assert not [line for line in context.logs if line.level <= qret.LOG_INFO]
    with qret.Context(db.dsn, level=qret.LOG_INFO) as context:
        context.cycle()
        assert context.logs == []


def test_cycle_error_is_logged_once_in_a_while(empty_db):
    """L21: at most one line every 30 seconds."""
    with qret.Context(empty_db.dsn, level=qret.LOG_WARN) as context:
        for number in range(1, 6):
            code, report = context.try_cycle()
            assert code == qret.ERR_SCHEMA
            assert report["consecutive_failures"] == number
            assert report["last_success_us"] == 0
        (line,) = context.events("cycle_error")
        assert line.level == qret.LOG_ERROR
        assert line.suppressed == 0


def test_failures_are_counted_until_a_good_cycle(db):
    """B05: three failing cycles show as such, and one good one ends the count."""
    with qret.Context(db.dsn) as context:
        good = context.cycle()["last_success_us"]
        assert good > 0
        db.sql("ALTER SCHEMA queen RENAME TO away")
        for number in (1, 2, 3):
            code, report = context.try_cycle()
            assert code < 0
            assert (report["consecutive_failures"], report["last_success_us"]) == (number, good)
        db.sql("ALTER SCHEMA away RENAME TO queen")
        report = context.cycle()
        assert report["consecutive_failures"] == 0
        assert report["last_success_us"] > good


def test_metrics_count_what_the_report_counts(db):
    bulk.backlog(db, 2, 3)
    with qret.Context(db.dsn) as context:
        known = {(row["name"], row["phase"]) for row in qret.metrics()}
        report = context.cycle()
        totals = {}
        for sample in context.samples:
            assert (sample.name, sample.phase) in known
            totals.setdefault(sample.name, []).append(sample.value)
        assert totals["qretention_segments_deleted_total"] == [report["segments_deleted"]] == [6]
        assert totals["qretention_messages_deleted_total"] == [report["messages_deleted"]]
        assert totals["qretention_steps_total"] == [report["steps"]]
        assert totals["qretention_cycles_total"] == [1]
        context.samples.clear()
        context.cycle()
        again = [s.value for s in context.samples if s.name == "qretention_segments_deleted_total"]
        assert again == [0]


def test_cadence_first_cycle_is_due_at_once(db):
    with qret.Context(db.dsn) as context:
        assert context.next_cycle_us() <= context.lib.qret_now_us()


def test_cadence_counts_from_the_start_of_the_cycle(db):
    """L22"""
    bulk.backlog(db, 4, 1)
    support.slow_deletes(db, 0.1)
    with qret.Context(db.dsn, interval_ms=5000) as context:
        before = context.lib.qret_now_us()
        context.cycle()
        due = context.next_cycle_us()
    assert before + 5000 * MS <= due <= before + 5200 * MS


def test_cadence_pauses_after_an_overrun(db):
    """L22, B11: interval / 10 within 1 to 60 s; never back to back, never a burst."""
    bulk.backlog(db, 4, 1)
    support.slow_deletes(db, 0.1)
    with qret.Context(db.dsn, interval_ms=100) as context:
        context.cycle()
        now = context.lib.qret_now_us()
        assert now + 900 * MS <= context.next_cycle_us() <= now + 1000 * MS
        started = time.monotonic()
        context.wait()
        assert 0.85 <= time.monotonic() - started < 3
        context.cycle()
        now = context.lib.qret_now_us()
        assert context.next_cycle_us() <= now + 1000 * MS


def test_cadence_after_a_skipped_cycle(db):
    """A busy gate is looked at again an interval later, not at once."""
    leader = db.connect()
    with leader.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(737001)")
    with qret.Context(db.dsn, interval_ms=700) as context:
        before = context.lib.qret_now_us()
        assert context.try_cycle()[0] == qret.BUSY
        assert before + 700 * MS <= context.next_cycle_us() <= before + 1700 * MS
