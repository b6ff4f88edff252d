"""What the second steps read: their batch, whatever the statistics and whatever lies dead (L4,
L23).
"""

import pytest

from sql.log_support import DAY, Log
from sql.log_v2_support import Steps
from sql.test_log_bounds import FIXED, MANY, SITUATIONS, buffers, fill, prepare

RETAIN = "log_retention_step_v2(%s, %s, NULL, {})"
COMPLETED = "log_retention_step_v2(%s, NULL, %s, {})"
EVICT = "log_evict_max_wait_step_v2(%s, %s, {})"
PURGE = "log_txns_purge_step_v2(%s, %s, {})"


@pytest.fixture
def log(db):
    return Log(db)


@pytest.mark.parametrize("situation", SITUATIONS)
def test_L4_an_idle_second_step_reads_a_handful(log, situation):
    pid = prepare(log, situation)
    log.consumer(pid, committed=-1)
    for text, age in ((RETAIN, 60), (COMPLETED, 60), (COMPLETED, 1), (EVICT, 60), (PURGE, 60)):
        call = text.format(1000)
        buffers(log, call, pid, log.at(age * DAY))
        assert buffers(log, call, pid, log.at(age * DAY)) <= FIXED, call


@pytest.mark.parametrize("rows", [1, 100])
@pytest.mark.parametrize("situation", SITUATIONS)
def test_L4_P6_a_deleting_second_step_reads_its_batch(log, situation, rows):
    pid = prepare(log, situation)
    log.consumer(pid, committed=MANY * 10)
    for text in (RETAIN, COMPLETED, EVICT, PURGE):
        for _ in range(7):  # past the fifth call, plpgsql may turn to a generic plan
            used = buffers(log, text.format(rows), pid, log.at(DAY))
        # A row is read twice and marked once; its index entries come with it.
        assert used <= 5 * rows + 2 * FIXED, text


def test_L4_B48_the_first_fresh_row_ends_the_scan_of_a_second_step(log):
    pid = log.partition()
    fill(log, pid, MANY, DAY)
    log.consumer(pid, committed=MANY * 10)
    log.sql("ANALYZE {q}.log_segments")
    for text in (RETAIN, COMPLETED, EVICT, PURGE):
        call = text.format(100000)
        buffers(log, call, pid, log.at(50 * DAY))
        assert buffers(log, call, pid, log.at(50 * DAY)) <= FIXED, call


def test_L4_B07_dead_entries_below_the_watermark_are_not_crawled_by_a_second_step(log):
    pid = log.partition()
    fill(log, pid, MANY, 50 * DAY)
    log.segments(pid, [0], base=MANY * 10)
    holder = log.db.connect(autocommit=False)
    with holder.cursor() as cursor:  # nothing that is deleted from here on can be cleaned away
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        cursor.execute("SELECT 1")
    steps = Steps(log)
    assert steps.retain(2, pid, DAY, rows=MANY)["deleted"] == MANY
    assert steps.purge(2, pid, DAY, rows=MANY)["deleted"] == MANY
    for text in (RETAIN, PURGE):
        call = text.format(1000)
        buffers(log, call, pid, log.at(DAY))
        assert buffers(log, call, pid, log.at(DAY)) <= FIXED, call
    holder.rollback()


def test_P6_steps_cost_the_same_at_the_end_of_a_backlog_as_at_its_start(log):
    pid = log.partition()
    fill(log, pid, MANY, 50 * DAY)
    holder = log.db.connect(autocommit=False)
    with holder.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        cursor.execute("SELECT 1")
    used = [buffers(log, RETAIN.format(500), pid, log.at(DAY)) for _ in range(MANY // 500)]
    assert log.bases(pid) == []
    assert max(used[2:]) <= 2 * min(used[2:])
    holder.rollback()
