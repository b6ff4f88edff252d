"""Three hosts for minutes; every few seconds one is killed with SIGKILL and another started.

    /usr/bin/python3 tests/soak/soak.py [--minutes N] [--gate session|lease] [--pooler]

What must hold is checked at the end by the database's own records: never two at once, a cycle at
least every two intervals, and exactly as many rows deleted as the audit rows say. Where the host that
takes over is killed in its cycle as well, its lease has to run out too: one interval more.
"""

import argparse
import collections
import os
import random
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from cycle import support  # noqa: E402 pylint: disable=wrong-import-position
from fault import hosts, pooler, spies, worlds  # noqa: E402 pylint: disable=wrong-import-position
from pg import bulk, qret  # noqa: E402 pylint: disable=wrong-import-position
from pg.cluster import Cluster  # noqa: E402 pylint: disable=wrong-import-position

HOSTS = 3
PARTITIONS = 12
INTERVAL_MS = 2000
SLACK_SECONDS = 1.5  # starting a process on a busy machine is not the library's doing

Result = collections.namedtuple(
    "Result", "cycles killed pushed audited gaps overlaps unguarded errors"
)
Gap = collections.namedtuple("Gap", "seconds broken")  # broken: cycles that a kill cut short in it


def cut_short(host):
    """When its last cycle began, if that has no end."""
    begins = [line["begin"] for line in host.lines if "begin" in line]
    return begins[-1:] if len(begins) > len(host.ends()) else []


class Soak:
    """One run over one database."""

    def __init__(self, db, dsn, gate, seed=0, **options):
        self.db, self.dsn = db, dsn
        self.options = dict(options, gate=gate, interval_ms=INTERVAL_MS, batch_size=10)
        self.random = random.Random(seed)
        self.pushed = self.killed = self.serial = 0
        self.hosts, self.gone = [], []

    def start_host(self):
        self.serial += 1
        dsn = f"{self.dsn} application_name=host-{self.serial}"
        self.hosts.append(hosts.Host(dsn, seconds=3600, **self.options))

    def kill_one(self):
        victim = self.hosts.pop(self.random.randrange(len(self.hosts)))
        victim.kill()
        self.killed += 1
        self.gone.append(victim)

    def push(self, ids):
        chosen = self.random.sample(ids, 3)
        bulk.segments(self.db, chosen, 2, 2 * support.HOUR)
        self.pushed += 6

    def run(self, seconds):
        spies.install(self.db)
        support.slow_deletes(self.db, 0.005)
        _, ids = bulk.backlog(self.db, PARTITIONS, 1, 2 * support.HOUR)
        self.pushed += PARTITIONS
        try:
            for _ in range(HOSTS):
                self.start_host()
            for host in self.hosts:
                host.wait_for(lambda line: "ready" in line)
            began = time.monotonic()
            next_kill = began + 4
            while time.monotonic() < began + seconds:
                self.push(ids)
                time.sleep(0.25)
                if time.monotonic() > next_kill:
                    self.kill_one()
                    self.start_host()
                    next_kill = time.monotonic() + self.random.uniform(2, 5)
            ended = time.monotonic()
            for host in self.hosts:
                host.signal(signal.SIGTERM)
            for host in self.hosts:
                host.finish()
        finally:
            for host in self.hosts:
                host.kill()
        self.gone += self.hosts
        return self.judge(began, ended)

    def judge(self, began, ended):
        with qret.Context(self.db.dsn, batch_size=100) as last:
            worlds.heal(last)
        assert bulk.count(self.db) == 0
        moments = [line["end"] for host in self.gone for line in host.ends("DONE", "PARTIAL")]
        moments = [began, *sorted(m for m in moments if began < m < ended), ended]
        broken = [begin for host in self.gone for begin in cut_short(host)]
        errors = collections.Counter(
            (line["code"], line["sqlstate"], line["message"])
            for host in self.gone
            for line in host.ends()
            if line["code"] not in ("DONE", "BUSY", "STOPPED")
        )
        return Result(
            cycles=len(moments) - 2,
            killed=self.killed,
            pushed=self.pushed,
            audited=worlds.audited(self.db),
            gaps=[
                Gap(b - a, sum(a < begin < b for begin in broken))
                for a, b in zip(moments, moments[1:])
            ],
            overlaps=spies.overlaps(self.db),
            unguarded=spies.unguarded(self.db),
            errors=errors,
        )


def longest(result):
    """The five longest gaps."""
    return [f"{seconds:.2f} s, {broken} cut short" for seconds, broken in sorted(result.gaps)[-5:]]


def check(result, slack_seconds=SLACK_SECONDS):
    """Raises where something did not hold."""
    assert result.overlaps == [], result.overlaps[:3]
    assert result.audited == result.pushed, (result.audited, result.pushed)
    for gap in result.gaps:
        intervals = 2 + max(gap.broken - 1, 0)
        assert gap.seconds < intervals * INTERVAL_MS / 1000 + slack_seconds, longest(result)
    assert result.unguarded <= result.killed + 1
    assert not result.errors, result.errors


def run(minutes, gate, through_pooler=False, seed=0):
    settings = {"track_commit_timestamp": "on"}
    with Cluster(settings=settings) as cluster:
        db = cluster.create_database(("broker", "log"))
        if not through_pooler:
            return Soak(db, db.dsn, gate, seed).run(60 * minutes)
        with pooler.PgBouncer(cluster) as bouncer:
            options = {"pooler": "transaction"}
            return Soak(db, bouncer.dsn(db.name), gate, seed, **options).run(60 * minutes)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--gate", choices=("session", "lease"), default="lease")
    parser.add_argument("--pooler", action="store_true", help="through PgBouncer, transaction mode")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    result = run(chosen.minutes, chosen.gate, chosen.pooler, chosen.seed)
    print(
        f"{result.cycles} cycles, {result.killed} hosts killed, {result.pushed} rows pushed,"
        f" {result.audited} audited, longest gaps {longest(result)},"
        f" {len(result.overlaps)} overlaps, errors {dict(result.errors)}"
    )
    check(result)


if __name__ == "__main__":
    main()
