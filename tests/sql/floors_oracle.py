"""What is due and what must be left, said slowly, from the rows alone: no floor, no index, no
step.
"""

import datetime

EDGE = datetime.datetime(1, 1, 1, tzinfo=datetime.timezone.utc)


def window(clock, seconds):
    """A cutoff, or None where the rule is off."""
    if seconds is None or seconds <= 0:
        return None
    try:
        return clock - datetime.timedelta(seconds=seconds)
    except OverflowError:
        return EDGE


class Oracle:
    """One look at every table at a clock."""

    def __init__(self, db, clock, schema="queen"):
        self.clock = clock

        def rows(text):
            return db.sql(text.replace("{q}", schema))

        self.policies = {
            row[0]: row[1:]
            for row in rows(
                "SELECT id::text, retention_enabled, retention_seconds,"
                " completed_retention_seconds,"
                " max_wait_time_seconds, dedup_window_seconds FROM {q}.queues"
            )
        }
        self.partitions = {
            row[0]: row[1:]
            for row in rows(
                "SELECT id::text, queue_id::text, log_start, txns_start FROM {q}.log_partitions"
            )
        }
        self.segments = self._grouped(
            rows(
                "SELECT partition_id::text, base_offset, end_offset, created_at FROM"
                " {q}.log_segments"
                " ORDER BY base_offset"
            )
        )
        self.txns = self._grouped(
            rows(
                "SELECT partition_id::text, base_offset, end_offset, created_at FROM {q}.log_txns"
                " ORDER BY base_offset"
            )
        )
        self.consumers = self._grouped(
            rows("SELECT partition_id::text, committed FROM {q}.log_consumers")
        )

    @staticmethod
    def _grouped(rows):
        groups = {}
        for row in rows:
            groups.setdefault(row[0], []).append(row[1:])
        return groups

    def cutoffs(self, pid):
        enabled, stale, completed, wait, dedup = self.policies[self.partitions[pid][0]]
        off = None if enabled else 0
        return (
            window(self.clock, stale if off is None else off),
            window(self.clock, completed if off is None else off),
            window(self.clock, max(v for v in (dedup, completed, 900) if v is not None)),
            window(self.clock, wait),
        )

    def goes(self, pid, segment):
        """The rule that lets a head go: 'forced' (1 or 3), 'completed' (2), or None."""
        stale, completed, _, wait = self.cutoffs(pid)
        _, end, created = segment
        if any(cutoff is not None and created < cutoff for cutoff in (stale, wait)):
            return "forced"
        committed = [row[0] for row in self.consumers.get(pid, [])]
        if completed is not None and created < completed and committed and end <= min(committed):
            return "completed"
        return None

    def head(self, rows, watermark):
        return next((row for row in rows if row[0] >= watermark), None)

    def due(self):
        """{partition: set of 'segments', 'txns'} that a step would delete from now."""
        found = {}
        for pid, (_, log_start, txns_start) in self.partitions.items():
            segment = self.head(self.segments.get(pid, []), log_start)
            if segment and self.goes(pid, segment):
                found.setdefault(pid, set()).add("segments")
            row = self.head(self.txns.get(pid, []), txns_start)
            cutoff = self.cutoffs(pid)[2]
            if row and cutoff is not None and row[2] < cutoff:
                found.setdefault(pid, set()).add("txns")
        return found

    def pinned(self):
        """Partitions held by their slowest group alone."""
        held = set()
        for pid, (_, log_start, _) in self.partitions.items():
            segment = self.head(self.segments.get(pid, []), log_start)
            completed = self.cutoffs(pid)[1]
            if segment and not self.goes(pid, segment):
                if completed is not None and segment[2] < completed:
                    held.add(pid)
        return held

    def left(self):
        """{partition: (bases of segments, bases of sidecar rows)} after everything due is gone."""
        return {pid: (self._kept_segments(pid), self._kept_txns(pid)) for pid in self.partitions}

    def _kept_segments(self, pid):
        rows = [row for row in self.segments.get(pid, []) if row[0] >= self.partitions[pid][1]]
        while rows and self.goes(pid, rows[0]):
            rows.pop(0)
        return [row[0] for row in rows]

    def _kept_txns(self, pid):
        cutoff = self.cutoffs(pid)[2]
        rows = [row for row in self.txns.get(pid, []) if row[0] >= self.partitions[pid][2]]
        while rows and cutoff is not None and rows[0][2] < cutoff:
            rows.pop(0)
        return [row[0] for row in rows]


def rows_left(db, schema="queen"):
    """The same from the tables: what is there now."""
    found = {}
    for column, table in (("log_start", "log_segments"), ("txns_start", "log_txns")):
        for pid, bases in db.sql(
            f"SELECT p.id::text, array_remove(array_agg(x.base_offset ORDER BY"
            f" x.base_offset), NULL)"
            f" FROM {schema}.log_partitions AS p LEFT JOIN {schema}.{table} AS x"
            f" ON x.partition_id = p.id AND x.base_offset >= p.{column} GROUP BY p.id"
        ):
            found[pid] = found.get(pid, ()) + (bases,)
    return found
