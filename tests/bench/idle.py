"""Cycles with nothing to delete: P1, P7; and the memory of one that has much: P8."""

import os

from bench import baselines, data, server
from bench.measure import Row, buffers, child, context, drained, median, require, seconds

QUEUES = 100
FRESH = 60
STALE = 20 * data.HOUR

LOOK = """
EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON)
SELECT * FROM queen.retention_floors_due_v1(now(), 200, NULL, NULL, NULL, NULL, NULL, NULL, NULL)
"""


def _idle(db, cycles):
    """Median seconds and round trips of a cycle with nothing due, on a warm context."""
    with context(db) as library:
        for _ in range(5):
            library.cycle()
        timed = [seconds(library.cycle) for _ in range(cycles)]
    reports = [report for _, report in timed]
    require(not any(report["partitions"] for report in reports), "an idle cycle stepped")
    return median([t for t, _ in timed]), max(report["round_trips"] for report in reports)


def p1(bench, scale):
    """Idle: a million partitions, nothing due."""
    row = Row(
        "P1",
        f"idle cycle, {scale.of(1000000)} partitions in {QUEUES} queues, nothing due",
        "<= 5 ms, <= 25 round trips, <= 16 buffers a queue, 10,000 times cheaper than the seed's,"
        " flat within 3x from 1,000 partitions",
    )
    sizes = {n: scale.of(n, 200) for n in (1000, 10000, 1000000)}
    took, trips, look = {}, 0, 0
    for full, size in sizes.items():
        db = bench.filled(f"idle_{full}", lambda db, size=size: data.crowd(db, size, FRESH, QUEUES))
        took[full], trips = _idle(db, 51 if not scale.smoke else 5)
        db.sql("SET jit = off")
        db.sql(LOOK)
        look = buffers(db.one(LOOK))
        if full == 10000:
            seed = baselines.SeedCycle(db)
            rounds = [seconds(seed.run) for _ in range(scale.rounds)]
            seed.close()
            require(all(result == (0, 0, 0) for _, result in rounds), "the seed's cycle deleted")
            cost = median([t for t, _ in rounds]) / size
        db.drop()
    ratio = cost * sizes[1000000] / took[1000000]
    flat = max(took.values()) / min(took.values())
    per_queue = look / QUEUES
    return row.end(
        f"{took[1000000] * 1e3:.2f} ms, {trips} round trips, {per_queue:.1f} buffers a queue,"
        f" {ratio:,.0f} times cheaper, flat within {flat:.2f}x",
        took[1000000] <= 0.005 and trips <= 25 and per_queue <= 16 and ratio >= 10000 and flat <= 3,
        "median cycle at " + ", ".join(f"{sizes[n]:,}: {t * 1e3:.2f} ms" for n, t in took.items()),
        f"the seed's cycle: {cost * 1e6:.0f} us a partition, measured at {sizes[10000]:,},"
        f" so {cost * sizes[1000000]:,.0f} s at {sizes[1000000]:,}",
        "buffers: EXPLAIN of the due list's full look; a cycle in which the clean-up of empty"
        " partitions runs, one a minute, is not in the median",
        round_trips=trips,
        buffers_a_queue=per_queue,
    )


def _blocks(db):
    """Buffers that the database has touched so far; sessions report theirs when they end."""
    rows = db.cluster.admin(
        "SELECT blks_hit + blks_read FROM pg_stat_database WHERE datname = %s", db.name
    )
    return rows[0][0]


def _buffers_a_cycle(db, cycles):
    """Opening the session is in it, spread over the cycles."""
    before = _blocks(db)
    with context(db) as library:
        for _ in range(cycles):
            require(library.cycle()["partitions"] == 0, "an idle cycle stepped")
    db.close()
    while _sessions(db):
        pass
    return (_blocks(db) - before) / cycles


def _sessions(db):
    text = "SELECT count(*) FROM pg_stat_activity WHERE datname = %s AND application_name <> 'held'"
    return db.cluster.admin(text, db.name)[0][0]


def p7(bench, scale):
    """Dead index entries that nobody may remove, because a snapshot is open."""
    partitions, segments = scale.of(50000, 500), 10
    cycles = 1000 if not scale.smoke else 200
    row = Row(
        "P7",
        f"buffers of an idle cycle after {partitions * segments} rows were deleted under a held"
        f" snapshot; {cycles} cycles",
        "<= 2x those before the delete",
    )

    def fill(db):
        data.crowd(db, partitions, STALE, QUEUES, segments)
        db.sql("UPDATE queen.queues SET retention_seconds = 86400, dedup_window_seconds = 86400")

    db = bench.filled("dead", fill)
    before = _buffers_a_cycle(db, cycles)
    holder = db.connect(autocommit=False, application_name="held")
    cursor = holder.cursor()
    cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    cursor.execute("SELECT count(*) FROM queen.queues")
    db.sql("UPDATE queen.queues SET retention_seconds = 12 * 3600")  # now all of it is due
    with context(db) as library:
        reports = drained(library)
    deleted = sum(report["segments_deleted"] for report in reports)
    require(deleted == partitions * segments, f"{deleted} segments deleted")
    held = _buffers_a_cycle(db, cycles)
    holder.close()
    after = _buffers_a_cycle(db, cycles)
    db.drop()
    worst = max(held, after) / before
    return row.end(
        f"{worst:.2f}x",
        worst <= 2,
        f"buffers a cycle: {before:.0f} before, {held:.0f} while the snapshot is held,"
        f" {after:.0f} after it is gone",
        ratio=worst,
    )


CHILD = """
import sys
from bench.measure import context


class Named: dsn = sys.argv[1]
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1])
library = context(Named)
before = resident()
report = library.cycle()
print(report["segments_deleted"], report["partitions"], before, resident())
"""


def _grown(db, partitions):
    """Pages that a process has grown by in a cycle over so many due partitions."""
    with child("-c", CHILD, db.dsn) as process:
        deleted, stepped, before, after = map(int, process.stdout.read().split())
    require(deleted == partitions == stepped, f"{deleted} segments of {stepped} partitions")
    return (after - before) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def p8(bench, scale):
    """Memory of the client does not follow the work."""
    row = Row(
        "P8",
        f"client memory in a cycle with {scale.of(1000000)} due partitions, against one with"
        f" {scale.of(1000)}",
        "<= 8 MB more",
    )
    grown = {}
    for full in (1000, 1000000):
        size = scale.of(full, 100)
        db = server.fresh(bench, lambda db, size=size: data.crowd(db, size, STALE, QUEUES, txns=False))
        took, grown[full] = seconds(_grown, db, size)
        db.drop()
    more = grown[1000000] - grown[1000]
    return row.end(
        f"{more:+.2f} MB",
        more <= 8,
        f"grown by {grown[1000]:.2f} MB and {grown[1000000]:.2f} MB in the cycle; the large one took"
        f" {took:.0f} s, one segment a partition",
        more=more,
    )
