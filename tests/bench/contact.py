"""The first meeting with a large backlog in one partition: P6."""

from bench import data
from bench.measure import Row, alternate, buffers, context, drained, median, require, seconds, spread

BATCH = 1000

STEP = """
EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON)
SELECT * FROM queen.log_retention_core_v2((SELECT id FROM queen.log_partitions),
    now() - interval '1 hour', NULL, %s, NULL, true)
"""
SEGMENT_BLOCKS = """
SELECT heap_blks_hit + heap_blks_read + idx_blks_hit + idx_blks_read
    + COALESCE(toast_blks_hit + toast_blks_read + tidx_blks_hit + tidx_blks_read, 0)
FROM pg_statio_all_tables WHERE relid = 'queen.log_segments'::regclass
"""


def _source(bench, segments):
    return bench.filled(f"deep_{segments}", lambda db: data.backlog(db, 1, segments, 100))


def _settle(db):
    """Until the library's session is gone, and has reported what it read."""
    text = "SELECT count(*) FROM pg_stat_activity WHERE datname = %s AND pid <> pg_backend_pid()"
    while db.one(text, db.name):
        pass


def _drain(bench, segments):
    """(seconds, buffers of segments for each row deleted)."""
    db = _source(bench, segments)
    with context(db) as library:
        took, reports = seconds(drained, library)
    deleted = sum(report["segments_deleted"] for report in reports)
    require(deleted == segments, f"{deleted} of {segments} deleted")
    _settle(db)
    blocks = db.one(SEGMENT_BLOCKS)
    db.drop()
    return took, blocks / segments


def _steps(bench, segments, batch):
    """The most buffers that one of the first ten steps reads, of all tables."""
    db = _source(bench, segments)
    db.sql("SET jit = off")
    most = max(buffers(db.one(STEP, batch)) for _ in range(10))
    left = db.one("SELECT count(*) FROM queen.log_segments")
    require(left == segments - 10 * batch, f"{left} left")
    db.drop()
    return most


def p6(bench, scale):
    """Bounded reads, and time that grows with the backlog and no faster."""
    large = scale.of(1000000, 4000)
    batch = BATCH if not scale.smoke else 100
    row = Row(
        "P6",
        f"one partition with {large} stale segments: buffers a step, and time against half of it",
        "<= 10 x batch buffers a step; twice the rows <= 2.3x the time",
    )
    most = _steps(bench, large, batch)
    figures = alternate(
        scale.rounds,
        half=lambda: _drain(bench, large // 2),
        whole=lambda: _drain(bench, large),
    )
    half, whole = ([t for t, _ in figures[name]] for name in ("half", "whole"))
    blocks = max(b for side in figures.values() for _, b in side)
    ratio = median(whole) / median(half)
    return row.end(
        f"{most / batch:.1f} x batch, {ratio:.2f}x the time",
        most <= 10 * batch and blocks <= 10 and ratio <= 2.3,
        f"first ten steps of {batch} rows read {most} buffers at the most, all tables; the whole drain"
        f" {blocks:.1f} buffers of segments a row",
        f"{large // 2:,} rows: {median(half):.1f} s ({spread(half)}); {large:,} rows:"
        f" {median(whole):.1f} s ({spread(whole)})",
        buffers_a_row=blocks,
        step_buffers=most,
        batch=batch,
    )
