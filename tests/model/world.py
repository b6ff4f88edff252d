"""Lives one random life in a database and in the reference model at once, and compares them.

World does the broker's part; model/cycles.py does the retention.
"""

import random
import uuid

from model import reference
from model.reference import DAY, SECOND
from pg.broker import Broker, to_us

WINDOWS = [None, 0, -1, -7, 30, 60, 600, 3600, 86_400, 2_147_483_647]
MAX_WAITS = WINDOWS + [None] * 5
DEDUP_WINDOWS = [0, -1, 1, 60, 900, 3600, 7200, 40 * 86_400]
AGES = [1, 29, 30, 59, 60, 599, 600, 899, 900, 3599, 3600, 7200, 86_400, 2 * 86_400]
SILENCES = [86_400, 2 * 86_400, 31 * 86_400]
AGES += SILENCES[2:]
GROUPS = ["__QUEUE_MODE__", "fast", "slow", "Gruppe 'ü'"]
TENANTS = [None, "aaaaaaaa-0000-0000-0000-000000000001"]
DAYS = [1, 2, 30]


class Mismatch(AssertionError):
    """Database and model disagree."""


class World:
    """The operations of one seed. A failure prints them."""

    def __init__(self, db, seed, broker=None):
        self.db = db
        self.random = random.Random(seed)
        self.seed = seed
        self.broker = broker or Broker(db, prepares=True)
        self.model = reference.Log()
        self.trail = []
        self.names = {}
        self.query = self.broker.stream_query()
        self.gaps = set()  # partitions with offsets that no segment covers
        for _ in range(self.random.randint(1, 3)):
            self.new_queue()
        for _ in range(self.random.randint(1, 5)):
            self.new_partition()

    def fail(self, text):
        trail = "\n".join(f"  {step}" for step in self.trail)
        raise Mismatch(f"seed {self.seed}: {text}\noperations:\n{trail}")

    def expect(self, what, found, wanted):
        if found != wanted:
            self.fail(f"{what}: the database says {found!r}, the model {wanted!r}")

    def now(self):
        return to_us(self.broker.one("SELECT clock_timestamp()"))

    # --- broker operations ------------------------------------------------------------------

    def live(self, operations):
        """That many random operations."""
        choices = {
            self.push: 40,
            self.pop: 22,
            self.ack: 10,
            self.seek: 5,
            self.age: 16,
            self.new_partition: 4,
            self.silence: 5,
            self.configure: 4,
            self.dead_letter: 3,
            self.clear_dead_letters: 1,
            self.stream_state: 2,
            self.clear_stream_state: 1,
            self.step_clock_back: 2,
            self.future_head: 1,
            self.skip_offsets: 2,
            self.widen: 1,
            self.unsubscribe: 1,
            self.delete_queue: 1,
        }
        names = list(choices)
        for _ in range(operations):
            operation = self.random.choices(names, choices.values())[0]
            if not self.model.partitions and operation not in (self.configure, self.delete_queue):
                operation = self.new_partition
            operation()

    def note(self, name, *details):
        self.trail.append(" ".join([name, *map(str, details)]))

    def some_partition(self):
        return self.random.choice(sorted(self.model.partitions))

    def some_consumer(self, pid):
        groups = sorted(self.model.partitions[pid].consumers)
        return self.random.choice(groups) if groups else None

    def uuid(self):
        return str(uuid.UUID(int=self.random.getrandbits(128)))

    def policy(self):
        return {
            "retention_enabled": self.random.choices([True, False, None], [8, 1, 1])[0],
            "retention_seconds": self.random.choice(WINDOWS),
            "completed_retention_seconds": self.random.choice(WINDOWS),
            "max_wait_time_seconds": self.random.choice(MAX_WAITS),
            "dedup_window_seconds": self.random.choice(DEDUP_WINDOWS),
        }

    def new_queue(self):
        policy, name = self.policy(), "queue"
        for tenant in TENANTS:
            if (name, tenant) not in self.names.values():
                break
        else:
            tenant, name = None, f"queue {len(self.trail)}"
        queue_id = self.broker.create_queue(name, tenant, self.uuid(), **policy)
        self.names[queue_id] = (name, tenant)
        self.model.queues[queue_id] = reference.Queue(**policy)
        self.note("queue", queue_id, name, tenant, policy)

    def new_partition(self):
        if not self.model.queues:
            self.new_queue()
        queue_id = self.random.choice(sorted(self.model.queues))
        pid = self.uuid()
        self.note("partition", pid, "of", queue_id)
        self.broker.partition(queue_id, f"part {pid}", pid)
        stamps = self.broker.sql(
            "SELECT created_at, last_write_at FROM {q}.log_partitions WHERE id = %s", pid
        )
        created_at, last_write_at = map(to_us, stamps[0])
        self.model.partitions[pid] = reference.Partition(queue_id, created_at, last_write_at)

    def configure(self):
        if not self.model.queues:
            self.new_queue()
        queue_id = self.random.choice(sorted(self.model.queues))
        policy = self.policy()
        self.note("configure", queue_id, policy)
        self.broker.configure(queue_id, **policy)
        self.model.queues[queue_id] = reference.Queue(**policy)

    def delete_queue(self):
        if len(self.model.queues) < 2:
            return
        queue_id = self.random.choice(sorted(self.model.queues))
        name, tenant = self.names.pop(queue_id)
        self.note("delete queue", queue_id)
        result = self.broker.delete_queue(name, tenant)
        self.expect("delete_queue_v1", result, {"deleted": True, "queue": name, "existed": True})
        self.model.delete_queue(queue_id)

    def push(self):
        pid = self.some_partition()
        count = self.random.randint(1, 4)
        messages = [f"m{n}" for n in self.random.sample(range(200), count)]
        self.note("push", pid, messages)
        base, _, stamp = self.broker.push(pid, messages)
        stored = self.model.push(pid, messages, stamp, stamp)
        self.expect("push stored", base is not None, stored)

    def pop(self):
        pid, group = self.some_partition(), self.random.choice(GROUPS)
        auto_ack, seconds = self.random.random() < 0.6, self.random.choice([1, 60, 40 * 86_400])
        self.note("pop", pid, group, "auto" if auto_ack else f"lease {seconds}")
        now = self.now()
        found = self.broker.pop(pid, group, auto_ack, lease_seconds=seconds)
        end = self.model.pop(pid, group, auto_ack, "worker", now, seconds * SECOND)
        self.expect("pop", found and found[1], end)
        self.adopt_stamps(pid, group)

    def adopt_stamps(self, pid, group):
        """The server stamped the row by its own clock: take its stamps over."""
        row = self.broker.sql(
            "SELECT created_at, lease_acquired_at, lease_expires_at FROM {q}.log_consumers"
            " WHERE partition_id = %s AND consumer_group = %s",
            pid,
            group,
        )[0]
        consumer = self.model.partitions[pid].consumers[group]
        consumer.created_at, consumer.lease_acquired_at, consumer.lease_expires_at = map(to_us, row)

    def ack(self):
        pid = self.some_partition()
        group = self.some_consumer(pid)
        if group is None:
            return
        upto = None
        if self.random.random() < 0.3:
            upto = self.random.randint(0, max(0, self.model.partitions[pid].last_offset))
        self.note("ack", pid, group, upto)
        now = self.now()
        found = self.broker.ack(pid, group, upto=upto)
        self.expect("ack", found, self.model.ack(pid, group, "worker", upto, now))

    def seek(self):
        pid = self.some_partition()
        group = self.some_consumer(pid)
        if group is None:
            return
        committed = self.random.randint(-1, self.model.partitions[pid].last_offset)
        self.note("seek", pid, group, committed)
        self.broker.seek(pid, group, committed)
        self.model.seek(pid, group, committed)

    def unsubscribe(self):
        pid = self.some_partition()
        group = self.some_consumer(pid)
        if group is not None:
            self.note("unsubscribe", pid, group)
            self.broker.unsubscribe(pid, group)
            del self.model.partitions[pid].consumers[group]

    def dead_letter(self):
        pid = self.some_partition()
        self.note("dead letter", pid)
        self.broker.dead_letter(pid, "slow", 0)
        self.model.partitions[pid].dead_letters += 1

    def clear_dead_letters(self):
        pid = self.some_partition()
        self.note("clear dead letters", pid)
        self.broker.clear_dead_letters(pid)
        self.model.partitions[pid].dead_letters = 0

    def stream_state(self):
        pid = self.some_partition()
        self.note("stream state", pid)
        self.broker.stream_state(self.query, pid)
        self.model.partitions[pid].states = 1

    def clear_stream_state(self):
        pid = self.some_partition()
        self.note("clear stream state", pid)
        self.broker.clear_stream_state(pid)
        self.model.partitions[pid].states = 0

    # --- time and trouble -------------------------------------------------------------------

    def age(self):
        seconds = self.random.choice(AGES)
        pids = sorted(self.model.partitions)
        if self.random.random() < 0.5:
            pids = [self.random.choice(pids)]
        self.note("age", seconds, *pids)
        for pid in pids:
            self.broker.age(seconds, pid)
            self.model.age(pid, seconds * SECOND)

    def silence(self):
        """A partition, an empty one if there is any, is left alone for days."""
        pids = sorted(self.model.partitions)
        empty = [pid for pid in pids if not self.model.partitions[pid].segments]
        pid, seconds = self.random.choice(empty or pids), self.random.choice(SILENCES)
        self.note("silence", pid, seconds)
        self.broker.age(seconds, pid)
        self.model.age(pid, seconds * SECOND)

    def _move_row(self, pid, index, seconds):
        row = self.model.partitions[pid].segments[index]
        self.note("restamp", pid, row.base, f"{seconds:+}s")
        for table, rows in self._tables(pid):
            self.broker.sql(
                f"UPDATE {{q}}.{table} SET created_at = created_at + make_interval(secs => %s)"
                " WHERE partition_id = %s AND base_offset = %s",
                seconds,
                pid,
                row.base,
            )
            for other in rows:
                if other.base == row.base:
                    other.created_at += seconds * SECOND

    def _tables(self, pid):
        partition = self.model.partitions[pid]
        return (("log_segments", partition.segments), ("log_txns", partition.txns))

    def step_clock_back(self):
        """A segment somewhere gets an older or newer stamp than its neighbours."""
        pid = self.some_partition()
        count = len(self.model.partitions[pid].segments)
        if count:
            seconds = self.random.choice([-1, 1]) * self.random.choice(AGES)
            self._move_row(pid, self.random.randrange(count), seconds)

    def future_head(self):
        pid = self.some_partition()
        if self.model.partitions[pid].segments:
            self._move_row(pid, 0, 40 * 86_400)

    def skip_offsets(self):
        """Offsets that were allocated and never written."""
        pid, count = self.some_partition(), self.random.randint(1, 5)
        self.note("gap", pid, count)
        self.broker.sql(
            "UPDATE {q}.log_partitions SET last_offset = last_offset + %s WHERE id = %s", count, pid
        )
        self.model.partitions[pid].last_offset += count
        self.gaps.add(pid)

    def widen(self):
        """The newest segment comes to span more offsets than an int4 can count."""
        pid = self.some_partition()
        partition = self.model.partitions[pid]
        if not partition.segments or partition.segments[-1].end != partition.last_offset:
            return
        base, wide = partition.segments[-1].base, 3_000_000_000
        self.note("widen", pid, base)
        self.broker.sql(
            "UPDATE {q}.log_partitions SET last_offset = last_offset + %s WHERE id = %s", wide, pid
        )
        partition.last_offset += wide
        for table, rows in self._tables(pid):
            self.broker.sql(
                f"UPDATE {{q}}.{table} SET end_offset = end_offset + %s"
                " WHERE partition_id = %s AND base_offset = %s",
                wide,
                pid,
                base,
            )
            for row in rows:
                if row.base == base:
                    row.end += wide

    def telling_moment(self, days):
        """A clock for a cycle: now, or a past moment at which some cutoff meets a stamp exactly."""
        real = self.now()
        if self.random.random() < 0.3:
            return real
        kinds = [sorted(m for m in kind if m < real) for kind in self._moments(days)]
        kinds = [kind for kind in kinds if kind]
        if not kinds:
            return real
        return self.random.choice(self.random.choice(kinds)) + self.random.choice([-1, 0, 0, 1])

    def _moments(self, days):
        """Sets of moments: one for each rule, and one for the clean-up."""
        every, completed, txns, max_wait, cleanup = set(), set(), set(), set(), set()
        for partition in self.model.partitions.values():
            ages = reference.Cutoffs.of(self.model.queues[partition.queue], 0)
            slowest = partition.slowest()
            for row in partition.segments:
                if ages.every is not None:
                    every.add(row.created_at - ages.every)
                if ages.completed is not None and slowest is not None and row.end <= slowest:
                    completed.add(row.created_at - ages.completed)
                if ages.max_wait is not None:
                    max_wait.add(row.created_at - ages.max_wait)
            txns |= {row.created_at - ages.txns for row in partition.txns}
            if not partition.segments:
                cleanup.add(max(partition.created_at, partition.last_write_at) + days * DAY)
                cleanup |= {c.last_activity() + days * DAY for c in partition.consumers.values()}
        return every, completed, txns, max_wait, cleanup

    # --- comparison -------------------------------------------------------------------------

    def compare(self, exact_history=True):
        """Every row that retention may delete or write, database against model."""
        self._compare_partitions()
        self._compare_rows()
        self._compare_consumers()
        self._compare_untouched()
        self._compare_history(exact_history)

    def _compare_partitions(self):
        rows = self.broker.sql(
            "SELECT id::text, queue_id::text, last_offset, log_start, txns_start"
            " FROM {q}.log_partitions ORDER BY id"
        )
        found = {pid: (queue, last, start) for pid, queue, last, start, _ in rows}
        partitions = self.model.partitions.items()
        wanted = {pid: (p.queue, p.last_offset, p.log_start) for pid, p in partitions}
        self.expect("partitions", found, wanted)
        for pid, _, _, _, txns_start in rows:
            partition = self.model.partitions[pid]
            highest = partition.txns_start
            if pid in self.gaps:
                highest = partition.txns[0].base if partition.txns else partition.last_offset + 1
            if not partition.txns_start <= txns_start <= max(highest, partition.txns_start):
                self.expect(f"txns_start of {pid}", txns_start, partition.txns_start)
            partition.txns_start = txns_start

    def _compare_rows(self):
        for table, attribute in (("log_segments", "segments"), ("log_txns", "txns")):
            found = self.broker.sql(
                "SELECT partition_id::text, base_offset, end_offset, created_at"
                f" FROM {{q}}.{table} ORDER BY 1, 2"
            )
            found = [(pid, base, end, to_us(stamp)) for pid, base, end, stamp in found]
            wanted = [
                (pid, row.base, row.end, row.created_at)
                for pid, partition in sorted(self.model.partitions.items())
                for row in getattr(partition, attribute)
            ]
            self.expect(table, found, wanted)

    def _compare_consumers(self):
        found = self.broker.sql(
            "SELECT partition_id::text, consumer_group, committed, batch_end"
            " FROM {q}.log_consumers"
        )
        wanted = [
            (pid, group, consumer.committed, consumer.batch_end)
            for pid, partition in self.model.partitions.items()
            for group, consumer in partition.consumers.items()
        ]
        self.expect("log_consumers", sorted(found), sorted(wanted))

    def _compare_untouched(self):
        partitions = self.model.partitions.items()
        for table, attribute in (("{q}.log_dlq", "dead_letters"), ("{s}.state", "states")):
            rows = f"SELECT partition_id::text, count(*) FROM {table}"
            found = dict(self.broker.sql(rows + " GROUP BY 1"))
            wanted = {pid: getattr(p, attribute) for pid, p in partitions if getattr(p, attribute)}
            found = {pid: n for pid, n in found.items() if pid in self.model.partitions}
            self.expect(table, found, wanted)

    def _compare_history(self, exact):
        rows = self.broker.sql(
            "SELECT partition_id::text, retention_type, count(*), sum(messages_deleted)::bigint"
            " FROM {q}.retention_history GROUP BY 1, 2"
        )
        found = {(pid, kind): (count, messages) for pid, kind, count, messages in rows}
        wanted = self.model.history_totals()
        if not exact:
            found, wanted = _without_batches(found), _without_batches(wanted)
        self.expect("retention_history", found, wanted)
        self.broker.sql("DELETE FROM {q}.retention_history")
        self.model.history.clear()


def _without_batches(totals):
    """Totals that do not depend on how a backlog was cut into batches.

    The rule that names a row is decided per batch, and a saturated count says only "many".
    """
    merged = {}
    for (pid, kind), (_, messages) in totals.items():
        kind = reference.RETENTION if kind == reference.COMPLETED else kind
        merged[(pid, kind)] = merged.get((pid, kind), 0) + messages
    return {key: min(messages, reference.INT4_MAX) for key, messages in merged.items()}
