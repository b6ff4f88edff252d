"""Many partitions with little in each: P5."""

import contextlib
import subprocess

from bench import baselines, data, server
from bench.measure import Row, alternate, child, context, drained, median, require, seconds, spread

STALE = 20 * data.HOUR
DELAY = 0.001


@contextlib.contextmanager
def slow_link(port):
    """A port behind which the server is, DELAY away each way; the proxy has a process of its own."""
    with child("-m", "bench.delay_proxy", port, DELAY, stdin=subprocess.PIPE) as link:
        yield int(link.stdout.readline())
        link.stdin.close()


def _source(bench, partitions):
    return bench.filled(
        f"small_{partitions}", lambda db: data.crowd(db, partitions, STALE, 10, txns=False)
    )


def _ours(bench, partitions, conninfo, **options):
    db = _source(bench, partitions)
    with context(db, conninfo(db), **options) as library:
        took, reports = seconds(drained, library)
    deleted = [sum(r[name] for r in reports) for name in ("segments_deleted", "txns_purged")]
    require(deleted == [partitions, 0], f"{deleted} deleted of {partitions}")
    trips = sum(r["round_trips"] for r in reports)
    db.drop()
    return took / partitions, trips


def _seed(bench, partitions, settings):
    db = _source(bench, partitions)
    cycle = baselines.SeedCycle(db, **settings)
    took, result = seconds(cycle.run)
    cycle.close()
    require(result == (partitions, 0, 0), f"{result} deleted of {partitions}")
    db.drop()
    return took / partitions


def _synced(bench, scale):
    """A server that waits for its disk; the bench's own where nothing is timed."""
    return contextlib.nullcontext(bench) if scale.smoke else server.Server(synced=True)


def p5(bench, scale):
    """Over a socket and over a slow link.

    The seed commits as the server does by default and waits for its log; the library does not.
    """
    partitions = scale.of(10000, 200)
    fewer = scale.of(2000, 100)
    row = Row(
        "P5",
        f"{partitions} partitions with one stale segment each, against one blocking call a step",
        ">= 4x on a local socket, >= 20x over a link with 1 ms each way",
    )
    with _synced(bench, scale) as bench, slow_link(bench.port) as port:
        near = alternate(
            scale.rounds,
            seed=lambda: _seed(bench, partitions, {"commit": "on"}),
            hasty=lambda: _seed(bench, partitions, {}),
            ours=lambda: _ours(bench, partitions, lambda db: db.dsn),
            lanes=lambda: _ours(bench, partitions, lambda db: db.dsn, parallelism=2),
        )
        far = alternate(
            scale.rounds,
            seed=lambda: _seed(
                bench, fewer, {"commit": "on", "host": "127.0.0.1", "port": port}
            ),
            ours=lambda: _ours(
                bench, partitions, lambda db: f"{db.dsn} host=127.0.0.1 port={port}"
            ),
        )
    ratios, notes = [], []
    for label, figures in (("socket", near), ("link", far)):
        ours, seed = [t for t, _ in figures["ours"]], figures["seed"]
        ratios.append(median(seed) / median(ours))
        notes.append(
            f"{label}: {median(ours) * 1e6:.0f} us a partition ({spread(ours, 1e6, '{:.0f}')}),"
            f" {median([t for _, t in figures['ours']]):.0f} round trips; one call a step"
            f" {median(seed) * 1e6:.0f} us ({spread(seed, 1e6, '{:.0f}')})"
        )
    notes.append(
        f"one call a step without waiting for the log, as ours: {median(near['hasty']) * 1e6:.0f} us"
        f" ({spread(near['hasty'], 1e6, '{:.0f}')})"
    )
    lanes = [t for t, _ in near["lanes"]]
    notes.append(
        f"two lanes on the socket: {median(lanes) * 1e6:.0f} us ({spread(lanes, 1e6, '{:.0f}')}),"
        f" {median(near['seed']) / median(lanes):.1f}x"
    )
    notes.append(f"one call a step over the link: measured with {fewer} partitions")
    return row.end(
        f"{ratios[0]:.1f}x and {ratios[1]:.1f}x",
        ratios[0] >= 4 and ratios[1] >= 20,
        *notes,
        round_trips=near["ours"][0][1],
        partitions=partitions,
    )
