"""What ours is measured against: the seed's cycle and plain deletes. One connection, one statement at a time."""

from bench import server

SCAN = """
SELECT p.id,
       CASE WHEN q.retention_enabled AND q.retention_seconds > 0
            THEN now() - make_interval(secs => q.retention_seconds) END,
       CASE WHEN q.retention_enabled AND q.completed_retention_seconds > 0
            THEN now() - make_interval(secs => q.completed_retention_seconds) END,
       now() - make_interval(secs => GREATEST(q.dedup_window_seconds,
            q.completed_retention_seconds, 900)),
       CASE WHEN q.max_wait_time_seconds > 0
            THEN now() - make_interval(secs => q.max_wait_time_seconds) END
FROM queen.log_partitions AS p JOIN queen.queues AS q ON p.queue_id = q.id
ORDER BY p.id
"""

STEPS = """
PREPARE retention(uuid, timestamptz, timestamptz, int) AS
    SELECT (r ->> 'deleted')::bigint, (r ->> 'done')::bool
    FROM queen.log_retention_step_v1($1, $2, $3, $4) AS r;
PREPARE txns(uuid, timestamptz, int) AS
    SELECT (r ->> 'deleted')::bigint, (r ->> 'done')::bool
    FROM queen.log_txns_purge_step_v1($1, $2, $3) AS r;
PREPARE max_wait(uuid, timestamptz, int) AS
    SELECT (r ->> 'deleted')::bigint, (r ->> 'done')::bool
    FROM queen.log_evict_max_wait_step_v1($1, $2, $3) AS r;
"""


def _loop(cursor, text, *args):
    """One step after another until done; rows deleted."""
    deleted = 0
    while True:
        cursor.execute(text, args)
        rows, done = cursor.fetchone()
        deleted += rows
        if done or rows == 0:
            return deleted


class SeedCycle:
    """The list of all partitions, then one blocking call per partition and phase."""

    def __init__(self, db, batch=1000, **settings):
        self.batch = batch
        self.connection = server.connect(db, **settings)
        self.cursor = self.connection.cursor()
        self.cursor.execute(STEPS)

    def close(self):
        self.connection.close()

    def run(self):
        """(segments, sidecar rows, evicted)."""
        cursor, batch = self.cursor, self.batch
        cursor.execute(SCAN)
        work = cursor.fetchall()
        segments = txns = evicted = 0
        for pid, everything, completed, _, _ in work:
            if everything or completed:
                segments += _loop(
                    cursor, "EXECUTE retention(%s, %s, %s, %s)", pid, everything, completed, batch
                )
        for pid, _, _, cutoff, _ in work:
            txns += _loop(cursor, "EXECUTE txns(%s, %s, %s)", pid, cutoff, batch)
        for pid, _, _, _, cutoff in work:
            if cutoff:
                evicted += _loop(cursor, "EXECUTE max_wait(%s, %s, %s)", pid, cutoff, batch)
        return segments, txns, evicted


def bare_segments(db, ranges):
    """Ranged deletes, one a transaction; ranges: (partition, first offset, one past the last)."""
    connection = server.connect(db)
    cursor = connection.cursor()
    cursor.execute(
        "PREPARE bare(uuid, bigint, bigint) AS DELETE FROM queen.log_segments"
        " WHERE partition_id = $1 AND base_offset >= $2 AND base_offset < $3"
    )
    deleted = 0
    for row in ranges:
        cursor.execute("EXECUTE bare(%s, %s, %s)", row)
        deleted += cursor.rowcount
    connection.close()
    return deleted


def bare_events(db, first, last, events):
    """Events first to last with their deliveries, so many events a transaction; (events, deliveries)."""
    connection = server.connect(db)
    cursor = connection.cursor()
    cursor.execute(
        "PREPARE deliveries(bigint, bigint) AS"
        " DELETE FROM outbox.delivery WHERE event_id >= $1 AND event_id < $2;"
        "PREPARE events(bigint, bigint) AS DELETE FROM outbox.event WHERE id >= $1 AND id < $2"
    )
    counts = [0, 0]
    connection.autocommit = False
    for low in range(first, last + 1, events):
        bounds = (low, min(low + events, last + 1))
        cursor.execute("EXECUTE deliveries(%s, %s)", bounds)
        counts[1] += cursor.rowcount
        cursor.execute("EXECUTE events(%s, %s)", bounds)
        counts[0] += cursor.rowcount
        connection.commit()
    connection.close()
    return tuple(counts)


# The seed's four: each policy and the own windows through a partial index of the events still alive, each
# event checked against the partial index of deliveries that have not succeeded.
OWED = """NOT EXISTS (SELECT FROM outbox.delivery AS d WHERE d.event_id = e.id
    AND d.status <> 'succeeded' AND d.status NOT IN ({terminal}))"""
NOT_OWED = OWED.format(terminal="'dead', 'orphaned', 'cancelled'")
CONSUMED = OWED.format(terminal="'cancelled'")
PRUNE = (
    "SELECT e.id FROM outbox.event AS e WHERE e.delete_when = 'succeeded' AND " + CONSUMED,
    "SELECT e.id FROM outbox.event AS e WHERE e.delete_when = 'settled' AND " + NOT_OWED,
    "SELECT e.id FROM outbox.event AS e WHERE e.retention_seconds IS NOT NULL"
    " AND e.recorded_at + make_interval(secs => e.retention_seconds) < now() AND " + NOT_OWED,
    "SELECT e.id FROM outbox.event AS e WHERE e.retention_seconds IS NULL"
    " AND e.recorded_at < now() - interval '90 days' AND " + NOT_OWED,
)


class SeedPrune:
    """A prune with nothing due: the four queries, prepared."""

    def __init__(self, db):
        self.connection = server.connect(db)
        self.cursor = self.connection.cursor()
        for number, text in enumerate(PRUNE):
            self.cursor.execute(f"PREPARE prune_{number} AS {text} ORDER BY e.id LIMIT 5000")

    def close(self):
        self.connection.close()

    def run(self):
        found = 0
        for number in range(len(PRUNE)):
            self.cursor.execute(f"EXECUTE prune_{number}")
            found += len(self.cursor.fetchall())
        return found
