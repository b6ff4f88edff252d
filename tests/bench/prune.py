"""The outbox: a prune with nothing due (P9), and one with much (P10)."""

from bench import baselines, data, server
from bench.measure import Row, alternate, context, drained, median, require, seconds, spread

DAY = 86400
PARTS = ("event",)
OPTIONS = {"engines": "event", "event_prune_interval_ms": 0, "gate": "none"}
BATCH_EVENTS = 500


def _population(db, scale, windowed):
    """The seed's: own windows far from passed, events kept by a dead letter, delivered history."""
    dead, history = scale.of(5000, 50), scale.of(390000, 500)
    data.outbox(db, windowed, 1, DAY, retention_seconds=300 * DAY)
    data.outbox(db, dead, 1, 5 * DAY, status="dead", delete_when="succeeded")
    data.outbox(db, history // 4, 4, 10 * DAY)


def _idle(db, runs):
    """Median seconds of an idle prune: (ours, the seed's four queries)."""
    seed = baselines.SeedPrune(db)
    with context(db, **OPTIONS) as library:
        for _ in range(12):  # the first, and every tenth, look from the start
            library.cycle()
            seed.run()
        times = alternate(
            runs, ours=lambda: seconds(library.cycle), seed=lambda: seconds(seed.run)
        )
    seed.close()
    require(not any(found for _, found in times["seed"]), "the seed's queries found something due")
    deleted = sum(report["events_deleted"] for _, report in times["ours"])
    require(deleted == 0, f"{deleted} events deleted")
    return [median([t for t, _ in times[side]]) for side in ("ours", "seed")]


def p9(bench, scale):
    """Nothing due: what it costs to find that out."""
    windowed = scale.of(50000, 200)
    runs = 40 if not scale.smoke else 11
    row = Row(
        "P9",
        f"idle prune beside {windowed} own-window events, {scale.of(5000, 50)} dead letters, the"
        " delivered history; a whole cycle of ours against the seed's four queries",
        ">= 5 times less time, flat when the own windows grow tenfold",
    )
    db = server.fresh(bench, lambda db: _population(db, scale, windowed), PARTS)
    deliveries = db.one("SELECT count(*) FROM outbox.delivery")
    ours, seed = _idle(db, runs)
    data.outbox(db, 9 * windowed, 1, DAY, retention_seconds=300 * DAY)
    db.sql("VACUUM ANALYZE")
    grown, seed_grown = _idle(db, runs)
    db.drop()
    return row.end(
        f"{seed / ours:.1f} times less, {grown / ours:.2f}x with tenfold",
        seed / ours >= 5 and grown / ours <= 1.5,
        f"ours {ours * 1e3:.2f} ms, the seed's queries {seed * 1e3:.2f} ms; with tenfold own windows"
        f" {grown * 1e3:.2f} and {seed_grown * 1e3:.2f} ms; {deliveries:,} deliveries",
    )


def _ours(bench, fill, events):
    db = bench.filled("due_events", fill, PARTS)
    with context(db, **OPTIONS) as library:
        took, reports = seconds(drained, library)
    counts = [sum(r[name] for r in reports) for name in ("events_deleted", "deliveries_deleted")]
    require(counts == [events, 4 * events], f"{counts} deleted")
    require(db.one("SELECT count(*) FROM outbox.delivery") == 0, "deliveries left")
    db.drop()
    return 5 * events / took


def _bare(bench, fill, events):
    db = bench.filled("due_events", fill, PARTS)
    low, high = db.sql("SELECT min(id), max(id) FROM outbox.event")[0]
    took, counts = seconds(baselines.bare_events, db, low, high, BATCH_EVENTS)
    require(counts == (events, 4 * events), f"{counts} deleted")
    require(db.one("SELECT count(*) FROM outbox.delivery") == 0, "deliveries left")
    db.drop()
    return 5 * events / took


def p10(bench, scale):
    """Everything due."""
    events = scale.of(100000, 600)
    row = Row(
        "P10",
        f"rows/s pruning {events} due events with 4 deliveries each, against bare deletes in batches"
        f" of {BATCH_EVENTS} events",
        ">= 0.7",
    )

    def fill(db):
        data.outbox(db, events, 4, 100 * DAY)

    figures = alternate(
        scale.rounds,
        bare=lambda: _bare(bench, fill, events),
        ours=lambda: _ours(bench, fill, events),
    )
    ratio = median(figures["ours"]) / median(figures["bare"])
    return row.end(
        f"{ratio:.2f}",
        ratio >= 0.7,
        f"ours {median(figures['ours']):,.0f} rows/s ({spread(figures['ours'], form='{:,.0f}')}), bare"
        f" {median(figures['bare']):,.0f} ({spread(figures['bare'], form='{:,.0f}')})",
    )
