"""What a push feels beside a drain of its own partition: P4."""

import json

from bench import baselines, data
from bench.measure import Row, alternate, child, context, median, percentile, require
from bench.pusher import PUSH

RATE = 200
BLOB = 8000


class Pusher:
    """A pusher at work; result() waits for it."""

    def __init__(self, db, partition, duration):
        self.process = child("-m", "bench.pusher", db.dsn, partition, RATE, duration, BLOB)
        self.process.stdout.readline()

    def running(self):
        return self.process.poll() is None

    def result(self):
        text, _ = self.process.communicate()
        require(self.process.returncode == 0, "the pusher failed")
        return json.loads(text)


def _beside(copy, partition, duration, drain, smoke):
    """Runs a pusher, and drain(db, pusher) at the same time: (p99 ms, share of the rate, rows)."""
    db = copy()
    db.sql(PUSH)
    pusher = Pusher(db, partition, duration)
    rows = drain(db, pusher)
    require(smoke or not pusher.running(), "the backlog was gone before the pusher ended")
    result = pusher.result()
    pushed = db.one("SELECT count(*) FROM queen.log_txns")
    require(pushed == result["pushes"] + 10, f"{pushed} pushes arrived")
    db.drop()
    share = result["pushes"] / result["seconds"] / RATE
    return percentile(result["ms"], 0.99), share, rows


def _nothing(_db, pusher):
    pusher.process.wait()
    return 0


def _ours(db, pusher):
    """Drains while the pusher runs: one cycle after another, since one may leave a busy partition."""
    rows = 0
    with context(db) as library:
        while pusher.running():
            library.begin()
            while pusher.running():
                code = library.process()
                if code == 2:  # QRET_WAIT
                    library.wait()
                elif code != 1:
                    break
            deleted = library.report()["segments_deleted"]
            rows += deleted
            if deleted == 0:
                break
    return rows


def _seed(db, pusher):
    """The seed's step at 1,000 rows, one after another."""
    connection = baselines.server.connect(db)
    cursor = connection.cursor()
    cursor.execute(baselines.STEPS)
    pid = db.one("SELECT id FROM queen.log_partitions")
    rows = 0
    while pusher.running():
        cursor.execute("EXECUTE retention(%s, now() - interval '1 hour', NULL, 1000)", (pid,))
        deleted, done = cursor.fetchone()
        rows += deleted
        if done:
            break
    connection.close()
    return rows


def p4(bench, scale):
    """Three ways: no retention, ours, the seed's."""
    duration = 5 if not scale.smoke else 0.5
    segments = scale.of(300000, 20000)
    row = Row(
        "P4",
        f"push p99 at {RATE}/s on the very partition being drained, {BLOB // 1000} kB blobs",
        "<= 2x of no retention, rate kept >= 95 %, >= 10 times better than beside the seed's step",
    )

    def copy():
        return bench.filled("one_deep", lambda db: data.backlog(db, 1, segments, BLOB, 1))

    db = copy()
    partition = db.one("SELECT id::text FROM queen.log_partitions")
    db.drop()
    figures = alternate(
        scale.rounds,
        none=lambda: _beside(copy, partition, duration, _nothing, scale.smoke),
        ours=lambda: _beside(copy, partition, duration, _ours, scale.smoke),
        seed=lambda: _beside(copy, partition, duration, _seed, scale.smoke),
    )
    bench.forget("one_deep")
    p99 = {name: median([r[0] for r in rounds]) for name, rounds in figures.items()}
    share = {name: median([r[1] for r in rounds]) for name, rounds in figures.items()}
    rows = {name: median([r[2] for r in rounds]) / duration for name, rounds in figures.items()}
    times, better = p99["ours"] / p99["none"], p99["seed"] / p99["ours"]
    return row.end(
        f"{times:.2f}x, rate {share['ours'] * 100:.1f} %, {better:.1f} times better",
        times <= 2 and share["ours"] >= 0.95 and better >= 10,
        *(
            f"{label}: p99 {p99[name]:.2f} ms ("
            + " / ".join(f"{r[0]:.2f}" for r in figures[name])
            + f"), rate {share[name] * 100:.1f} %, {rows[name]:,.0f} rows/s drained"
            for name, label in (
                ("none", "no retention"),
                ("ours", "ours"),
                ("seed", "the seed's step, 1,000 rows"),
            )
        ),
    )
