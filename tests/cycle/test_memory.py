"""A cycle's memory does not grow with the number of partitions."""

import json
import os
import subprocess
import sys

import pytest

from cycle import support
from pg import bulk

HOST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "memory_host.py")
PARTITIONS = 100_000
LIMIT_KIB = 8 * 1024


def measure(db):
    """(KiB by which a new process grew in its cycle, the cycle's report)."""
    done = subprocess.run(
        [sys.executable, HOST, db.dsn],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    answer = json.loads(done.stdout)
    return answer["grown"], answer["report"]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_memory_of_a_cycle_over_many_partitions(db):
    queue_id = bulk.queue(db, dedup_window_seconds=0)
    ids = bulk.partitions(db, queue_id, PARTITIONS)
    bulk.segments(db, ids[:: PARTITIONS // 100], 1, 2 * support.HOUR)
    db.sql("ANALYZE")
    grown, report = measure(db)
    assert report["partitions"] >= PARTITIONS
    assert report["txns_purged"] == 100
    assert grown < LIMIT_KIB
