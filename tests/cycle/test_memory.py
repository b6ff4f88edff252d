"""A cycle's memory does not grow with the number of partitions."""

import pytest

from cycle import support
from pg import bulk, qret

PARTITIONS = 100_000
LIMIT_KIB = 8 * 1024


def status(field):
    with open("/proc/self/status", encoding="ascii") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith(field + ":"))


def peak_growth(run):
    """KiB by which the resident set grew at its highest while run() ran."""
    with open("/proc/self/clear_refs", "w", encoding="ascii") as refs:
        refs.write("5")  # forget the peak so far
    before = status("VmRSS")
    run()
    return status("VmHWM") - before


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.timeout(300)
def test_memory_of_a_cycle_over_many_partitions(db):
    queue_id = bulk.queue(db, dedup_window_seconds=0)
    ids = bulk.partitions(db, queue_id, PARTITIONS)
    bulk.segments(db, ids[:: PARTITIONS // 100], 1, 2 * support.HOUR)
    db.sql("ANALYZE")
    with qret.Context(db.dsn, level=qret.LOG_INFO, work_list="scan") as context:
        context.on_metric = lambda sample: context.samples.clear()
        with qret.Context(db.dsn) as warm:
            warm.install("log")
        reports = []
        grown = peak_growth(lambda: reports.append(context.cycle()))
        assert reports[0]["partitions"] >= PARTITIONS
        assert reports[0]["txns_purged"] == 100
        assert grown < LIMIT_KIB
