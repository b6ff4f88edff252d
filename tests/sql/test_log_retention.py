"""The retention step on one partition: what goes, what stays, what it says (L1 to L7)."""

import uuid

import psycopg2
import pytest

from sql.log_support import DAY, Log, shown

HOUR = 3600
NULL_ID = str(uuid.UUID(int=7))
NOTHING = {"deleted": 0, "new_log_start": 0, "done": True}


@pytest.fixture
def log(db):
    return Log(db)


def drain(log, pid, limit=100, **cutoffs):
    """Steps until done; returns the answers."""
    answers = []
    while not answers or not answers[-1]["done"]:
        answers.append(log.retain(pid, **cutoffs))
        assert len(answers) < limit
    return answers


def test_L1_a_batch_holds_at_most_max_rows(log):
    pid = log.partition()
    log.segments(pid, [5 * DAY] * 5)
    assert log.retain(pid, stale=DAY, rows=2) == {"deleted": 2, "new_log_start": 20, "done": False}
    assert log.retain(pid, stale=DAY, rows=2) == {"deleted": 2, "new_log_start": 40, "done": False}
    assert log.retain(pid, stale=DAY, rows=2) == {"deleted": 1, "new_log_start": 50, "done": True}
    assert log.retain(pid, stale=DAY, rows=2) == {"deleted": 0, "new_log_start": 50, "done": True}
    assert log.watermark(pid) == 50


def test_L1_done_is_exact_when_a_batch_is_full(log):
    pid = log.partition()
    log.segments(pid, [5 * DAY, 5 * DAY, HOUR])
    assert log.retain(pid, stale=DAY, rows=2) == {"deleted": 2, "new_log_start": 20, "done": True}


def test_L1_a_missing_partition_is_done(log):
    assert log.retain(NULL_ID, stale=DAY, completed=DAY) == NOTHING
    assert log.retain(None, stale=DAY) == NOTHING
    assert log.evict(NULL_ID, DAY) == NOTHING
    assert log.purge(NULL_ID, DAY) == {"deleted": 0, "new_txns_start": 0, "done": True}


@pytest.mark.parametrize("rows", [None, 0, -1, -2147483648, 1])
def test_L1_max_rows_below_one_counts_as_one(log, rows):
    pid = log.partition()
    log.segments(pid, [5 * DAY] * 3)
    assert log.retain(pid, stale=DAY, rows=rows)["deleted"] == 1
    assert log.purge(pid, DAY, rows=rows)["deleted"] == 1
    assert log.evict(pid, DAY, rows=rows)["deleted"] == 1


def test_L1_the_largest_max_rows_is_accepted(log):
    pid = log.partition()
    log.segments(pid, [5 * DAY] * 3)
    answer = log.retain(pid, stale=DAY, rows=2147483647)
    assert answer == {"deleted": 3, "new_log_start": 30, "done": True}


def test_L1_the_partition_row_is_locked_first_and_until_the_end(log):
    pid = log.partition()
    log.segments(pid, [HOUR])
    other = Log(log.db)
    log.connection.autocommit = False
    assert log.retain(pid, stale=DAY)["deleted"] == 0
    locked = other.sql("SELECT 1 FROM {q}.log_partitions WHERE id = %s FOR UPDATE SKIP LOCKED", pid)
    assert not locked
    log.connection.commit()
    assert other.sql("SELECT 1 FROM {q}.log_partitions WHERE id = %s FOR UPDATE SKIP LOCKED", pid)


def test_L2_a_null_cutoff_switches_its_rule_off(log):
    pid = log.partition()
    log.segments(pid, [50 * DAY] * 3)
    log.consumer(pid, committed=29)
    assert log.retain(pid) == NOTHING
    assert log.evict(pid, None) == NOTHING
    assert log.purge(pid, None) == {"deleted": 0, "new_txns_start": 0, "done": True}
    assert log.dead(pid, None) is False
    assert log.cleanup(None) == {"deleted": 0, "done": True}
    assert shown(log.cleanup_v2(None)) == {"deleted": 0, "last": None, "done": True}
    assert log.one("SELECT {q}.log_retention_boundary_v1(%s, 0, NULL)", pid) == 0
    assert log.bases(pid) == [0, 10, 20]
    assert log.sql("SELECT 1 FROM {q}.retention_history") == []


def test_L2_minus_infinity_deletes_nothing(log):
    pid = log.partition()
    log.segments(pid, [50 * DAY])
    log.consumer(pid, committed=9)
    for call in (
        "log_retention_step_v1(%s, '-infinity', '-infinity', 10)",
        "log_evict_max_wait_step_v1(%s, '-infinity', 10)",
        "log_txns_purge_step_v1(%s, '-infinity', 10)",
    ):
        assert log.one("SELECT {q}." + call, pid)["deleted"] == 0


def test_L3_a_segment_of_exactly_the_cutoffs_age_stays(log):
    pid = log.partition()
    log.segments(pid, [DAY + 0.000001, DAY, DAY - 0.000001])
    log.consumer(pid, committed=29)
    assert log.retain(pid, stale=DAY) == {"deleted": 1, "new_log_start": 10, "done": True}
    assert log.retain(pid, completed=DAY) == {"deleted": 0, "new_log_start": 10, "done": True}
    assert log.evict(pid, DAY) == {"deleted": 0, "new_log_start": 10, "done": True}
    assert log.purge(pid, DAY) == {"deleted": 1, "new_txns_start": 10, "done": True}
    assert log.bases(pid) == [10, 20] == log.bases(pid, "log_txns")


def test_L5_rule_2_needs_a_consumer(log):
    pid = log.partition()
    log.segments(pid, [50 * DAY] * 3)
    assert log.retain(pid, completed=DAY) == NOTHING
    log.consumer(pid, committed=-1)
    assert log.retain(pid, completed=DAY) == NOTHING


def test_L5_rule_2_stops_at_the_slowest_group(log):
    pid = log.partition()
    log.segments(pid, [50 * DAY] * 5)
    log.consumer(pid, committed=49, group="fast")
    log.consumer(pid, committed=29, group="slow")
    assert log.retain(pid, completed=DAY) == {"deleted": 3, "new_log_start": 30, "done": True}
    log.sql("DELETE FROM {q}.log_consumers WHERE consumer_group = 'slow'")
    assert log.retain(pid, completed=DAY) == {"deleted": 2, "new_log_start": 50, "done": True}


@pytest.mark.parametrize("committed, gone", [(18, 1), (19, 2), (20, 2), (28, 2), (29, 3)])
def test_L5_a_cap_in_mid_segment_keeps_the_whole_segment(log, committed, gone):
    pid = log.partition()
    log.segments(pid, [50 * DAY] * 3)
    log.consumer(pid, committed=committed)
    answer = log.retain(pid, completed=DAY)
    assert answer == {"deleted": gone, "new_log_start": gone * 10, "done": True}
    assert log.watermark(pid) == gone * 10


def test_L5_extreme_cursors_neither_fail_nor_delete_more(log):
    pid = log.partition()
    log.segments(pid, [50 * DAY] * 2 + [HOUR])
    log.consumer(pid, committed=9223372036854775807, group="top")
    assert log.retain(pid, completed=DAY)["deleted"] == 2
    log.consumer(pid, committed=-9223372036854775808, group="bottom")
    assert log.retain(pid, completed=0)["deleted"] == 0


def test_L5_rule_2_keeps_fresh_segments_that_are_consumed(log):
    pid = log.partition()
    log.segments(pid, [50 * DAY, HOUR])
    log.consumer(pid, committed=19)
    assert log.retain(pid, completed=DAY) == {"deleted": 1, "new_log_start": 10, "done": True}


def test_L5_the_watermark_never_moves_back(log):
    pid = log.partition(log_start=20)
    log.segments(pid, [50 * DAY] * 2)  # below the watermark: somebody else's business
    assert log.retain(pid, stale=DAY) == {"deleted": 0, "new_log_start": 20, "done": True}
    assert log.watermark(pid) == 20
    assert log.bases(pid) == [0, 10]


def test_L5_gaps_move_the_watermark_past_them(log):
    pid = log.partition()
    log.segments(pid, [50 * DAY], base=100)
    log.segments(pid, [50 * DAY], base=200)
    assert log.retain(pid, stale=DAY, rows=1) == {"deleted": 1, "new_log_start": 110, "done": False}
    assert log.retain(pid, stale=DAY, rows=1) == {"deleted": 1, "new_log_start": 210, "done": True}
    assert log.history(pid) == [("retention", 110), ("retention", 100)]


@pytest.mark.parametrize("cutoffs", [{"stale": DAY}, {"completed": DAY}, {"stale": DAY, "completed": 1}])
def test_L6_a_clock_that_stepped_back_leaves_no_hole(log, cutoffs):
    pid = log.partition()
    log.segments(pid, [50 * DAY, 0, 50 * DAY])
    log.consumer(pid, committed=29)
    drain(log, pid, **cutoffs)
    assert log.bases(pid) == [10, 20]
    assert log.watermark(pid) == 10


def test_L6_a_head_in_the_future_stops_deletion(log):
    pid = log.partition()
    log.segments(pid, [-50 * DAY, 50 * DAY])
    log.consumer(pid, committed=19)
    assert log.retain(pid, stale=DAY, completed=DAY) == NOTHING
    assert log.evict(pid, DAY) == NOTHING
    assert log.purge(pid, DAY) == {"deleted": 0, "new_txns_start": 0, "done": True}


@pytest.mark.parametrize(
    "committed, types",
    [
        (-1, ["retention"]),  # rule 2 adds nothing
        (19, ["retention"]),  # rule 1 alone reaches as far
        (29, ["completed_retention"]),
    ],
)
def test_L7_the_type_is_the_rule_that_moved_the_boundary(log, committed, types):
    pid = log.partition()
    log.segments(pid, [50 * DAY, 50 * DAY, 20 * DAY])
    log.consumer(pid, committed=committed)
    drain(log, pid, stale=30 * DAY, completed=10 * DAY)
    assert [kind for kind, _ in log.history(pid)] == types


def test_L7_the_type_is_decided_for_each_batch(log):
    pid = log.partition()
    log.segments(pid, [50 * DAY, 50 * DAY, 20 * DAY])
    log.consumer(pid, committed=29)
    answers = drain(log, pid, stale=30 * DAY, completed=10 * DAY, rows=2)
    assert [answer["deleted"] for answer in answers] == [2, 1]
    assert sorted(log.history(pid)) == [("completed_retention", 10), ("retention", 20)]


def test_L7_rules_take_turns_where_each_allows_what_the_other_does_not(log):
    """The head is consumed and younger than what follows it, which only rule 1 allows."""
    pid = log.partition()
    log.segments(pid, [20 * DAY, 50 * DAY, HOUR])
    log.consumer(pid, committed=9)
    first = log.retain(pid, stale=30 * DAY, completed=10 * DAY)
    assert first == {"deleted": 1, "new_log_start": 10, "done": False}
    second = log.retain(pid, stale=30 * DAY, completed=10 * DAY)
    assert second == {"deleted": 1, "new_log_start": 20, "done": True}
    assert sorted(log.history(pid)) == [("completed_retention", 10), ("retention", 10)]


def test_L7_an_explicit_type_wins(log):
    pid = log.partition()
    log.segments(pid, [50 * DAY] * 2)
    log.consumer(pid, committed=19)
    log.retain(pid, completed=DAY, rows=1, kind="by hand")
    log.retain(pid, completed=DAY, rows=1, kind="x" * 60)
    assert sorted(log.history(pid)) == [("by hand", 10), ("x" * 50, 10)]


def test_L7_no_history_and_no_write_where_nothing_goes(log):
    pid = log.partition()
    log.segments(pid, [HOUR] * 3)
    log.consumer(pid, committed=29)
    before = log.one("SELECT ctid::text FROM {q}.log_partitions WHERE id = %s", pid)
    log.retain(pid, stale=DAY, completed=DAY)
    log.evict(pid, DAY)
    log.purge(pid, DAY)
    assert log.history(pid) == []
    assert log.one("SELECT ctid::text FROM {q}.log_partitions WHERE id = %s", pid) == before


def test_L7_the_sidecar_purge_writes_no_history(log):
    pid = log.partition()
    log.segments(pid, [50 * DAY] * 3)
    assert log.purge(pid, DAY)["deleted"] == 3
    assert log.history(pid) == []
    assert log.watermark(pid, "txns_start") == 30
    assert log.watermark(pid) == 0


def test_L7_B61_more_messages_than_an_integer_holds(log):
    pid = log.partition()
    log.segments(pid, [50 * DAY] * 2, size=3_000_000_000)
    answer = log.retain(pid, stale=DAY)
    assert answer == {"deleted": 2, "new_log_start": 6_000_000_000, "done": True}
    assert log.history(pid) == [("retention", 2147483647)]
    assert log.purge(pid, DAY)["new_txns_start"] == 6_000_000_000


def test_L7_history_and_delete_are_one_transaction(log):
    pid = log.partition()
    log.segments(pid, [50 * DAY])
    log.connection.autocommit = False
    assert log.retain(pid, stale=DAY)["deleted"] == 1
    log.connection.rollback()
    assert log.bases(pid) == [0]
    assert log.history(pid) == []
    assert log.watermark(pid) == 0


def test_eviction_ignores_consumers_and_leases(log):
    pid = log.partition()
    log.segments(pid, [50 * DAY] * 2 + [HOUR])
    log.consumer(pid, committed=-1, batch_end=9, lease_expires_at=log.at(-HOUR), worker_id="w")
    assert log.evict(pid, DAY) == {"deleted": 2, "new_log_start": 20, "done": True}
    assert log.history(pid) == [("max_wait_time_eviction", 20)]
    assert log.one("SELECT batch_end FROM {q}.log_consumers") == 9


def test_boundary_follows_its_contract(log):
    pid = log.partition()
    log.segments(pid, [50 * DAY, 40 * DAY, 30 * DAY])

    def boundary(start, age):
        return log.one(
            "SELECT {q}.log_retention_boundary_v1(%s, %s, %s)", pid, start, log.at(age)
        )

    assert boundary(0, 60 * DAY) == 0
    assert boundary(0, 40 * DAY) == 10
    assert boundary(0, 35 * DAY) == 20
    assert boundary(0, DAY) == 30
    assert boundary(10, 60 * DAY) == 10
    assert boundary(15, 60 * DAY) == 20
    assert boundary(30, DAY) == 30
    assert boundary(77, DAY) == 77


def test_boundary_agrees_with_the_step(log):
    pid = log.partition()
    log.segments(pid, [50 * DAY, 40 * DAY, 0, 30 * DAY])
    for age in (60 * DAY, 45 * DAY, 35 * DAY, DAY):
        start = log.watermark(pid)
        expected = log.one(
            "SELECT {q}.log_retention_boundary_v1(%s, %s, %s)", pid, start, log.at(age)
        )
        assert log.retain(pid, stale=age)["new_log_start"] == expected


def test_steps_touch_neither_dead_letters_nor_traces_nor_queues(log):
    pid = log.partition()
    log.segments(pid, [50 * DAY] * 3)
    log.dead_letter(pid)
    log.trace(pid)
    before = log.kept()
    log.retain(pid, stale=DAY, completed=DAY)
    log.purge(pid, DAY)
    log.evict(pid, DAY)
    assert log.kept() == before


def test_L12_steps_put_the_planner_settings_back(log):
    settings = "SELECT name, setting FROM pg_settings WHERE name ~ '^(enable_|jit|search_path)'"
    pid = log.partition()
    log.segments(pid, [50 * DAY] * 3)
    before = log.sql(settings)
    log.connection.autocommit = False
    log.retain(pid, stale=DAY)
    log.purge(pid, DAY)
    log.evict(pid, DAY)
    assert log.cleanup()["deleted"] == 1
    assert log.cleanup_v2()["deleted"] == 0
    assert log.sql(settings) == before
    log.connection.rollback()


def test_a_trigger_that_keeps_rows_keeps_the_watermark(log):
    pid = log.partition()
    log.segments(pid, [50 * DAY] * 3)
    log.sql(
        "CREATE FUNCTION {q}.keep() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$"
    )
    for table in ("log_segments", "log_txns"):
        log.sql(
            f"CREATE TRIGGER keep BEFORE DELETE ON {{q}}.{table} FOR EACH ROW EXECUTE FUNCTION {{q}}.keep()"
        )
    assert log.retain(pid, stale=DAY) == NOTHING
    assert log.purge(pid, DAY) == {"deleted": 0, "new_txns_start": 0, "done": True}
    assert log.history(pid) == []
    assert log.bases(pid) == [0, 10, 20] == log.bases(pid, "log_txns")


def test_a_step_that_fails_leaves_everything(log):
    pid = log.partition()
    log.segments(pid, [50 * DAY] * 3)
    log.sql("ALTER TABLE {q}.retention_history ADD CHECK (messages_deleted < 5)")
    with pytest.raises(psycopg2.errors.CheckViolation):
        log.retain(pid, stale=DAY)
    assert log.bases(pid) == [0, 10, 20]
    assert log.watermark(pid) == 0
