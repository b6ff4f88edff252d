"""A large backlog: how fast it goes (P2), how long it locks (P3), what a second lane brings (P11)."""

from bench import baselines, data
from bench.measure import Row, alternate, context, drained, median, percentile, require, seconds, spread

PARTITIONS = 200
SEGMENTS = 1000
MESSAGES = 5

BEHIND = "SELECT count(*) FROM queen.log_partitions WHERE log_start <> last_offset + 1"


def _source(bench, scale, blob_bytes):
    partitions, segments = scale.of(PARTITIONS, 4), SEGMENTS if not scale.smoke else 200
    name = f"backlog_{blob_bytes}"
    return partitions * segments, lambda: bench.filled(
        name, lambda db: data.backlog(db, partitions, segments, blob_bytes, MESSAGES)
    )


def _left(db):
    return db.one("SELECT count(*) FROM queen.log_segments")


def ours(copy, rows, **options):
    """(rows a second, rows a step)."""
    db = copy()
    with context(db, **options) as library:
        took, reports = seconds(drained, library)
    deleted = sum(report["segments_deleted"] for report in reports)
    require(deleted == rows and _left(db) == 0, f"{deleted} of {rows} rows deleted")
    require(db.one(BEHIND) == 0, "a watermark was left behind")
    steps = db.one("SELECT count(*) FROM queen.retention_history")
    db.drop()
    return rows / took, deleted / steps


def bare(copy, rows, batch):
    """Rows a second of deletes that do nothing else."""
    db = copy()
    step = batch * MESSAGES
    work = []
    for pid, end in db.sql("SELECT id, last_offset + 1 FROM queen.log_partitions ORDER BY id"):
        work += [(pid, low, min(low + step, end)) for low in range(0, end, step)]
    took, deleted = seconds(baselines.bare_segments, db, work)
    require(deleted == rows and _left(db) == 0, f"{deleted} of {rows} rows deleted")
    db.drop()
    return rows / took


def p2(bench, scale):
    """Rows a second against plain deletes."""
    row = Row(
        "P2",
        f"rows/s draining {scale.of(PARTITIONS, 4)} partitions of {SEGMENTS} segments, 1.6 kB and"
        " 8 kB, against bare ranged deletes of as many rows",
        ">= 0.75 at 1.6 kB, >= 0.95 at 8 kB",
    )
    ratios, notes = [], []
    for blob_bytes in (1600, 8000):
        rows, copy = _source(bench, scale, blob_bytes)
        batch = round(ours(copy, rows)[1])  # also warms up
        figures = alternate(
            scale.rounds,
            bare=lambda copy=copy, rows=rows, batch=batch: bare(copy, rows, batch),
            ours=lambda copy=copy, rows=rows: ours(copy, rows),
        )
        rates = [rate for rate, _ in figures["ours"]]
        ratios.append(median(rates) / median(figures["bare"]))
        notes.append(
            f"{blob_bytes} B: ours {median(rates):,.0f} rows/s ({spread(rates, form='{:,.0f}')}), bare"
            f" {median(figures['bare']):,.0f} ({spread(figures['bare'], form='{:,.0f}')}), {batch} rows a step"
        )
    return row.end(
        f"{ratios[0]:.2f} and {ratios[1]:.2f}", ratios[0] >= 0.75 and ratios[1] >= 0.95, *notes
    )


# Written as the step's delete ends, which is before it asks for the lock, so the time is a little too
# long. The commit's own time is the server's.
CLOCK = """
CREATE UNLOGGED TABLE public.held (xid xid, began timestamptz, deleted timestamptz);
CREATE FUNCTION public.held() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO public.held VALUES (pg_current_xact_id()::xid, now(), clock_timestamp());
    RETURN NULL;
END $$;
CREATE TRIGGER held AFTER DELETE ON queen.log_segments
    FOR EACH STATEMENT EXECUTE FUNCTION public.held()
"""
TIMES = """
SELECT extract(epoch FROM pg_xact_commit_timestamp(xid) - deleted) * 1000,
       extract(epoch FROM pg_xact_commit_timestamp(xid) - began) * 1000
FROM public.held
"""


def p3(bench, scale):
    """How long a step keeps a push from its partition, and how long it takes."""
    row = Row(
        "P3",
        "time from the partition's lock to the commit, and of the whole step, 8 kB blobs",
        "lock p99 <= 2 ms, step p99 <= 10 ms",
    )
    rows, copy = _source(bench, scale, 8000)
    locks, steps = [], []
    for _ in range(scale.rounds):
        db = copy()
        db.sql(CLOCK)
        with context(db) as library:
            deleted = sum(report["segments_deleted"] for report in drained(library))
        require(deleted == rows, f"{deleted} of {rows} rows deleted")
        times = db.sql(TIMES)
        locks += [float(lock) for lock, _ in times]
        steps += [float(step) for _, step in times]
        db.drop()
    lock, step = percentile(locks, 0.99), percentile(steps, 0.99)
    return row.end(
        f"lock p99 {lock:.2f} ms, step p99 {step:.2f} ms",
        lock <= 2 and step <= 10,
        f"{len(steps)} steps in {scale.rounds} drains; lock median {median(locks):.2f} ms, most"
        f" {max(locks):.2f} ms; step median {median(steps):.2f} ms, most {max(steps):.2f} ms",
        "from a trigger's clock at the end of the step's DELETE, which comes just before the lock,"
        " to the commit's timestamp",
    )


def p11(bench, scale):
    """Two lanes against one."""
    row = Row(
        "P11",
        "rows/s of P2 with parallelism 2 against 1, on this machine's cores",
        ">= 1.5x where the server has the cores, never slower",
    )
    ratios, notes = [], []
    for blob_bytes in (1600, 8000):
        rows, copy = _source(bench, scale, blob_bytes)
        figures = alternate(
            scale.rounds,
            one=lambda copy=copy, rows=rows: ours(copy, rows, parallelism=1)[0],
            two=lambda copy=copy, rows=rows: ours(copy, rows, parallelism=2)[0],
        )
        ratios.append(median(figures["two"]) / median(figures["one"]))
        notes.append(
            f"{blob_bytes} B: {median(figures['one']):,.0f} rows/s with one"
            f" ({spread(figures['one'], form='{:,.0f}')}), {median(figures['two']):,.0f} with two"
            f" ({spread(figures['two'], form='{:,.0f}')})"
        )
    notes.append("client, bench and server share the machine's cores")
    return row.end(
        " and ".join(f"{ratio:.2f}x" for ratio in ratios), all(r >= 1.5 for r in ratios), *notes
    )
