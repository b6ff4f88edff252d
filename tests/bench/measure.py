"""Rounds, medians, percentiles and the row that a measurement becomes."""

import os
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field

from pg import qret


@dataclass
class Row:
    """One row of the table. notes: lines to read below it."""

    id: str
    what: str
    to_reach: str
    reached: str = ""
    ok: bool = False
    notes: list = field(default_factory=list)
    numbers: dict = field(default_factory=dict)

    def end(self, reached, ok, *notes, **numbers):
        self.reached, self.ok = reached, bool(ok)
        self.notes += notes
        self.numbers.update(numbers)
        return self


@dataclass
class Scale:
    """How large a run is: rows as a share of the full size, and how many rounds."""

    share: float = 1.0
    rounds: int = 3
    smoke: bool = False

    def of(self, full, least=1):
        return max(int(full * self.share), least)


def seconds(call, *args):
    """(how long it took, what it returned)."""
    begun = time.perf_counter()
    result = call(*args)
    return time.perf_counter() - begun, result


def alternate(rounds, **sides):
    """Runs the sides in turn, each round in the other order; {name: [values]}."""
    values = {name: [] for name in sides}
    for round_number in range(rounds):
        names = list(sides)
        for name in names if round_number % 2 == 0 else reversed(names):
            values[name].append(sides[name]())
    return values


def median(values):
    return statistics.median(values)


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]


def spread(values, unit=1.0, form="{:.1f}"):
    """The rounds as they came, for a note."""
    return " / ".join(form.format(value * unit) for value in values)


def require(condition, text):
    """The two sides of a row must have done the same work, or there is nothing to compare."""
    if not condition:
        raise AssertionError(text)


def context(db, dsn=None, **options):
    """The library on its own connection, opened, with the phases that a row does not measure off."""
    options.setdefault("partition_cleanup", False)
    library = qret.Context(dsn or db.dsn, level=0, **options)
    # A callback into Python for every step would be measured too.
    library.lib.qret_set_metrics(library.handle, qret.METRIC_FN(), None, qret.FREE_FN())
    library.schema_version("log" if options.get("engines", "log") == "log" else "event")
    return library


def drained(library, most=50):
    """Cycles until one deletes nothing; (reports of those that did)."""
    reports = []
    for _ in range(most):
        report = library.cycle()
        if not report["segments_deleted"] + report["txns_purged"] + report["events_deleted"]:
            return reports
        reports.append(report)
    raise AssertionError(f"not drained after {most} cycles")


def child(*arguments, **pipes):
    """Another Python of this kind, which finds the bench and the binding as we do."""
    environment = dict(os.environ, PYTHONPATH=os.path.join(qret.ROOT, "tests"))
    return subprocess.Popen(
        [sys.executable, *map(str, arguments)],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        **pipes,
    )


def buffers(plan):
    """Shared buffers of EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON)."""
    top = plan[0]["Plan"]
    return top["Shared Hit Blocks"] + top["Shared Read Blocks"]
