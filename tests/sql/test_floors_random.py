"""Random lives of a log under mode `due`, held against a slow oracle after every cycle (L18, L19).

Windows are whole thousands of seconds and ages lie half-way between, so that the seconds a test
takes decide nothing. Time passes by moving every stamp, the floors and the hints alike.
"""

import random
import uuid

import pytest

from pg.broker import Broker
from sql.floors_client import CUTOFFS, HINTS, Client, Cycle
from sql.floors_oracle import Oracle, rows_left

UNIT = 1000
SEEDS = range(16)
CYCLES = 9
OPERATIONS = 14
WINDOWS = [None, -5, 0, 0, UNIT, 3 * UNIT, 9 * UNIT, 2147483647]


class World:
    def __init__(self, db, seed):
        self.db = db
        self.rng = random.Random(seed)
        self.broker = Broker(db)
        self.client = Client(db, version=self.rng.choice([1, 2, 2]))
        self.cycle = Cycle(self.client, cap=self.rng.choice([1, 3, 200]))
        self.queues, self.partitions = [], []
        self.wrong = set()  # partitions whose floors were made wrong behind retention's back
        self.rows = self.rng.choice([1, 2, 100])
        for _ in range(3):
            self.create_queue()
        for _ in range(6):
            self.create_partition()

    def policy(self):
        pick = self.rng.choice
        return {
            "retention_enabled": pick([True, True, True, False]),
            "retention_seconds": pick(WINDOWS),
            "completed_retention_seconds": pick(WINDOWS),
            "max_wait_time_seconds": pick(WINDOWS + [0] * 6),
            "dedup_window_seconds": pick([0, UNIT, 5 * UNIT, 2147483647]),
        }

    # --- what happens to a log ----------------------------------------------------------------

    def create_queue(self):
        self.queues.append(self.broker.create_queue(f"q-{uuid.uuid4()}", **self.policy()))

    def create_partition(self):
        if self.queues:
            queue = self.rng.choice(self.queues)
            self.partitions.append(self.broker.partition(queue, str(uuid.uuid4())))

    def configure(self):
        if self.queues:
            self.broker.configure(self.rng.choice(self.queues), **self.policy())

    def push(self, pid):
        self.broker.push(pid, self.rng.randint(1, 4))

    def pop(self, pid):
        self.broker.pop(pid, self.group(), auto_ack=self.rng.random() < 0.7)

    def subscribe(self, pid):
        self.broker.subscribe(pid, self.group())

    def ack(self, pid):
        self.broker.ack(pid, self.group())

    def seek(self, pid):
        self.broker.seek(pid, self.group(), self.rng.randint(-1, 12))

    def unsubscribe(self, pid):
        self.broker.unsubscribe(pid, self.group())

    def group(self):
        return self.rng.choice(["a", "b"])

    def drop_partition(self, pid):
        self.db.sql("DELETE FROM queen.log_partitions WHERE id = %s", pid)
        self.partitions.remove(pid)

    def drop_queue(self):
        if len(self.queues) > 1:
            queue = self.queues.pop(self.rng.randrange(len(self.queues)))
            self.db.sql("DELETE FROM queen.queues WHERE id = %s", queue)
            alive = {row[0] for row in self.db.sql("SELECT id::text FROM queen.log_partitions")}
            self.partitions = [pid for pid in self.partitions if pid in alive]

    def time_passes(self):
        """Honestly: everything that is dated grows older, what retention knows of it too."""
        seconds = self.rng.randint(0, 6) * UNIT + UNIT // 2
        self.broker.age(seconds)
        self.shift(seconds)
        self.broker.age(UNIT // 2)
        self.shift(UNIT // 2)

    def shift(self, seconds):
        self.db.sql(
            "UPDATE queen.retention_floors SET segments_floor = segments_floor -"
            " make_interval(secs => %s),"
            " txns_floor = txns_floor - make_interval(secs => %s)",
            seconds,
            seconds,
        )
        if self.cycle.hints:
            for name in HINTS[3:]:
                self.cycle.hints[name] = self.db.one(
                    "SELECT array_agg(x - make_interval(secs => %s) ORDER BY n)::text"
                    " FROM unnest(%s::timestamptz[]) WITH ORDINALITY AS u(x, n)",
                    seconds,
                    self.cycle.hints[name],
                )

    # --- what makes floors wrong --------------------------------------------------------------

    def restore_rows(self, pid):
        """Old rows put back by hand, into a partition that may count as empty or fresh."""
        pushed = self.broker.push(pid, [str(uuid.uuid4())])
        for table in ("log_segments", "log_txns"):
            self.db.sql(
                f"UPDATE queen.{table} SET created_at = now() - make_interval(secs => %s)"
                " WHERE partition_id = %s AND base_offset = %s",
                self.rng.randint(0, 9) * UNIT + UNIT // 2,
                pid,
                pushed[0],
            )
        self.wrong.add(pid)

    def age_by_hand(self, pid):
        self.broker.age(3 * UNIT, pid)
        self.wrong.add(pid)

    def move(self, pid):
        self.db.sql(
            "UPDATE queen.log_partitions SET queue_id = %s WHERE id = %s",
            self.rng.choice(self.queues),
            pid,
        )
        self.wrong.add(pid)

    def lose_floors(self, pid):
        self.db.sql("DELETE FROM queen.retention_floors WHERE partition_id = %s", pid)
        self.wrong.add(pid)

    def leave_orphan(self):
        self.db.sql(
            "INSERT INTO queen.retention_floors (partition_id, queue_id) VALUES (%s, %s)",
            str(uuid.uuid4()),
            self.rng.choice(self.queues),
        )

    # --- what makes them right ----------------------------------------------------------------

    def rebuild(self):
        """From scratch, as if retention had never run."""
        self.db.sql("TRUNCATE queen.retention_floors")
        while self.db.one("SELECT queen.retention_floors_backfill_v1(4)"):
            pass
        self.cycle.hints = None
        self.wrong.clear()

    def reset(self):
        everything = self.db.one("SELECT queen.retention_floors_reset_v1()")
        assert everything == len(self.partitions)
        self.wrong.clear()

    def reset_queue(self):
        queue = self.rng.choice(self.queues)
        mine = {
            row[0]
            for row in self.db.sql(
                "SELECT id::text FROM queen.log_partitions WHERE queue_id = %s", queue
            )
        }
        assert self.db.one("SELECT queen.retention_floors_reset_v1(%s)", queue) == len(mine)
        self.wrong -= mine

    def walk(self):
        self.client.walk_round(limit=self.rng.choice([1, 3, 1000]))
        self.wrong.clear()
        stray = self.db.one(
            "SELECT count(*) FROM queen.retention_floors AS f FULL JOIN queen.log_partitions AS p"
            " ON p.id = f.partition_id WHERE p.queue_id IS DISTINCT FROM f.queue_id"
        )
        assert stray == 0
        assert self.client.walk_round() == [] or self.unsettled()

    def unsettled(self):
        """A walk may leave marks that only the next look clears; never twice in a row."""
        return self.client.walk_round() == []

    OF_ONE = [push] * 8 + [pop] * 6 + [ack, ack, seek, subscribe, subscribe, unsubscribe]
    OF_ONE += [drop_partition]
    OF_ALL = [create_partition] * 4 + [configure] * 4 + [time_passes] * 5
    OF_ALL += [create_queue, drop_queue]
    DAMAGE = [restore_rows, restore_rows, age_by_hand, move, lose_floors]
    REPAIR = [rebuild, reset, reset_queue, walk, walk]

    def happen(self):
        kind = self.rng.random()
        if kind < 0.65 and self.partitions:
            self.rng.choice(self.OF_ONE)(self, self.rng.choice(self.partitions))
        elif kind < 0.9:
            self.rng.choice(self.OF_ALL)(self)
        elif kind < 0.93 and self.partitions:
            self.rng.choice(self.DAMAGE)(self, self.rng.choice(self.partitions))
        elif kind < 0.95:
            self.leave_orphan()
        else:
            self.rng.choice(self.REPAIR)(self)

    # --- what must hold -----------------------------------------------------------------------

    def listed(self, hints):
        """The whole list, and what the re-check of pinned partitions would add to it."""
        found, exclude = {}, set()
        while True:
            items, end = self.client.due(exclude=exclude, hints=hints, cap=200)
            if not items:
                released, _ = self.client.pinned(end.clock)
                return found, set(released), end.clock
            found.update({item.partition_id: item for item in items})
            exclude |= set(found)

    def look(self):
        """The floors' due set holds the truly due one, whatever it has been through."""
        found, released, clock = self.listed(self.cycle.hints)
        due = Oracle(self.db, clock).due()
        missed = set(due) - set(found) - released - self.wrong
        assert not missed

    def probe(self):
        """Once looked at, they are equal."""
        found, released, clock = self.listed(None)
        self.client.refresh(set(found) | released, clock)
        found, released, clock = self.listed(None)
        oracle = Oracle(self.db, clock)
        due = {pid for pid, item in found.items() if any(item[name] for name in CUTOFFS)}
        assert due - self.wrong == set(oracle.due()) - self.wrong
        assert released - self.wrong == set()

    def run_cycle(self):
        clock = self.db.one("SELECT now()")
        expected = Oracle(self.db, clock).left()
        self.cycle.run(full=self.rng.random() < 0.2, rows=self.rows)
        actual = rows_left(self.db)
        for pid in set(expected) - self.wrong:
            assert actual[pid] == expected[pid], pid
        marked = {
            row[0]
            for row in self.db.sql(
                "SELECT partition_id::text FROM queen.retention_floors WHERE pinned_since IS"
                " NOT NULL"
            )
        }
        assert marked - self.wrong == Oracle(self.db, clock).pinned() - self.wrong


@pytest.mark.parametrize("seed", SEEDS)
def test_L18_L19_no_due_row_outlives_a_cycle(db, seed):
    world = World(db, seed)
    for _ in range(CYCLES):
        for _ in range(OPERATIONS):
            world.happen()
        world.look()
        if world.rng.random() < 0.3:
            world.probe()
        world.run_cycle()
    world.walk()
    world.run_cycle()
    assert world.wrong == set()
