"""A slow, plain model of a segment log and of its retention. Python's standard library only.

It keeps every row as an object in a list and walks the lists; it knows no SQL and no library.
Times are integers: microseconds since 1970.
"""

import dataclasses
import typing

SECOND = 1_000_000
DAY = 86_400 * SECOND
INT4_MAX = 2_147_483_647
MIN_DEDUP_SECONDS = 900

RETENTION = "retention"
COMPLETED = "completed_retention"
EVICTION = "max_wait_time_eviction"
PARTITION_DELETED = "__partition_deleted__"
COUNTS = ("segments_deleted", "txns_purged", "max_wait_evicted", "partitions_deleted")


@dataclasses.dataclass
class Row:
    """A segment or a sidecar row."""

    base: int
    end: int
    created_at: int
    messages: frozenset = frozenset()


@dataclasses.dataclass
class Consumer:
    created_at: int
    committed: int = -1
    batch_end: typing.Optional[int] = None
    worker: typing.Optional[str] = None
    lease_acquired_at: typing.Optional[int] = None
    lease_expires_at: typing.Optional[int] = None

    def leased(self, now):
        return (
            self.batch_end is not None
            and self.lease_expires_at is not None
            and self.lease_expires_at > now
        )

    def last_activity(self):
        stamps = (self.created_at, self.lease_acquired_at, self.lease_expires_at)
        return max(stamp for stamp in stamps if stamp is not None)


@dataclasses.dataclass
class Queue:
    retention_enabled: typing.Optional[bool] = False
    retention_seconds: typing.Optional[int] = 0
    completed_retention_seconds: typing.Optional[int] = 0
    max_wait_time_seconds: typing.Optional[int] = 0
    dedup_window_seconds: int = 3600


def _before(now, seconds):
    """The cutoff of a window; None where the setting is off."""
    if seconds is None or seconds <= 0:
        return None
    return now - seconds * SECOND


@dataclasses.dataclass
class Cutoffs:
    every: typing.Optional[int]
    completed: typing.Optional[int]
    txns: typing.Optional[int]
    max_wait: typing.Optional[int]

    @classmethod
    def of(cls, queue, now):
        enabled = bool(queue.retention_enabled)
        sidecar = max(
            MIN_DEDUP_SECONDS, queue.dedup_window_seconds, queue.completed_retention_seconds or 0
        )
        return cls(
            every=_before(now, queue.retention_seconds) if enabled else None,
            completed=_before(now, queue.completed_retention_seconds) if enabled else None,
            txns=_before(now, sidecar),
            max_wait=_before(now, queue.max_wait_time_seconds),
        )


@dataclasses.dataclass
class Partition:
    queue: str
    created_at: int
    last_write_at: int
    last_offset: int = -1
    log_start: int = 0
    txns_start: int = 0
    segments: list = dataclasses.field(default_factory=list)
    txns: list = dataclasses.field(default_factory=list)
    consumers: dict = dataclasses.field(default_factory=dict)
    dead_letters: int = 0
    states: int = 0

    def slowest(self):
        """The smallest committed offset; None where nobody consumes."""
        return min((c.committed for c in self.consumers.values()), default=None)


def stale_prefix(rows, cutoff):
    """How many rows from the front are strictly older than the cutoff."""
    count = 0
    if cutoff is not None:
        while count < len(rows) and rows[count].created_at < cutoff:
            count += 1
    return count


class Log:
    """Everything that retention can see."""

    def __init__(self):
        self.queues = {}
        self.partitions = {}
        self.history = []  # (partition id, type, messages)

    # --- broker -----------------------------------------------------------------------------

    def push(self, pid, messages, stamp, dedup_stamp):
        """False if the deduplication window holds one of the messages."""
        partition = self.partitions[pid]
        window = self.queues[partition.queue].dedup_window_seconds
        messages = frozenset(messages)
        if window > 0:
            oldest = dedup_stamp - window * SECOND
            for row in partition.txns:
                if row.created_at >= oldest and row.messages & messages:
                    return False
        base, end = partition.last_offset + 1, partition.last_offset + len(messages)
        partition.segments.append(Row(base, end, stamp))
        partition.txns.append(Row(base, end, stamp, messages))
        partition.last_offset = end
        if partition.last_write_at < stamp - SECOND:
            partition.last_write_at = stamp
        return True

    def pop(self, pid, group, auto_ack, worker, now, lease_us):
        """The end of the batch handed out; None where there is none."""
        partition = self.partitions[pid]
        consumer = partition.consumers.setdefault(group, Consumer(created_at=now))
        if consumer.leased(now):
            return None
        batch = [s for s in partition.segments if s.end > consumer.committed]
        if not batch:
            consumer.committed = max(consumer.committed, partition.last_offset)
            return None
        end = batch[0].end
        if auto_ack:
            partition.consumers[group] = Consumer(created_at=consumer.created_at, committed=end)
        else:
            consumer.batch_end, consumer.worker = end, worker
            consumer.lease_acquired_at, consumer.lease_expires_at = now, now + lease_us
        return end

    def ack(self, pid, group, worker, upto, now):
        consumer = self.partitions[pid].consumers[group]
        if not consumer.leased(now) or consumer.worker != worker:
            return False
        end = consumer.batch_end
        consumer.committed = end if upto is None else min(end, upto)
        consumer.batch_end = consumer.worker = consumer.lease_expires_at = None
        return True

    def seek(self, pid, group, committed):
        consumer = self.partitions[pid].consumers[group]
        consumer.committed = committed
        consumer.batch_end = consumer.worker = consumer.lease_expires_at = None

    def delete_queue(self, queue):
        del self.queues[queue]
        self.partitions = {p: row for p, row in self.partitions.items() if row.queue != queue}

    def age(self, pid, micros):
        """Moves every stamp of a partition into the past."""
        partition = self.partitions[pid]
        partition.created_at -= micros
        partition.last_write_at -= micros
        for row in partition.segments + partition.txns:
            row.created_at -= micros
        for consumer in partition.consumers.values():
            for field in ("created_at", "lease_acquired_at", "lease_expires_at"):
                if getattr(consumer, field) is not None:
                    setattr(consumer, field, getattr(consumer, field) - micros)

    # --- retention --------------------------------------------------------------------------

    def cycle(self, now, batch, cleanup_days, cleanup_now=None):
        """Phases 1 to 4, each partition in ascending id until nothing is left to do.

        now is the cycle's clock; cleanup_now that of phase 4, where it has another. Returns the
        counts.
        """
        counts = dict.fromkeys(COUNTS, 0)
        for pid in sorted(self.partitions):
            cutoffs = self.cutoffs(pid, now)
            while deleted := self.delete_batch(pid, cutoffs.every, cutoffs.completed, batch):
                counts["segments_deleted"] += deleted
        for pid in sorted(self.partitions):
            counts["txns_purged"] += self.purge_sidecar(pid, self.cutoffs(pid, now).txns)
        for pid in sorted(self.partitions):
            cutoff = self.cutoffs(pid, now).max_wait
            while deleted := self.delete_batch(pid, cutoff, None, batch, EVICTION):
                counts["max_wait_evicted"] += deleted
        late = now if cleanup_now is None else cleanup_now
        counts["partitions_deleted"] = self.clean_up(late - max(1, cleanup_days) * DAY, late)
        return counts

    def cutoffs(self, pid, now):
        return Cutoffs.of(self.queues[self.partitions[pid].queue], now)

    def deletable(self, pid, every, completed):
        """(segments that rule 1 alone lets go, segments that may go)"""
        partition = self.partitions[pid]
        by_age = stale_prefix(partition.segments, every)
        consumed = 0
        slowest = partition.slowest()
        if slowest is not None:
            consumed = stale_prefix(partition.segments, completed)
            while consumed and partition.segments[consumed - 1].end > slowest:
                consumed -= 1
        return by_age, max(by_age, consumed)

    def delete_batch(self, pid, every, completed, batch, kind=None):
        """One step: at most batch segments off the front. Returns how many went."""
        partition = self.partitions[pid]
        by_age, deletable = self.deletable(pid, every, completed)
        count = min(deletable, batch)
        if not count:
            return 0
        new_start = partition.segments[count - 1].end + 1
        if kind is None:
            kind = COMPLETED if count > by_age else RETENTION
        self.history.append((pid, kind, min(new_start - partition.log_start, INT4_MAX)))
        partition.log_start = new_start
        del partition.segments[:count]
        return count

    def purge_sidecar(self, pid, cutoff, batch=None):
        partition = self.partitions[pid]
        count = stale_prefix(partition.txns, cutoff)
        if batch is not None:
            count = min(count, batch)
        if count:
            partition.txns_start = partition.txns[count - 1].end + 1
            del partition.txns[:count]
        return count

    def dead(self, pid, cutoff, now):
        partition = self.partitions[pid]
        return (
            partition.created_at < cutoff
            and partition.last_write_at < cutoff
            and not partition.segments
            and not partition.dead_letters
            and not partition.states
            and not any(c.leased(now) for c in partition.consumers.values())
            and not any(c.last_activity() >= cutoff for c in partition.consumers.values())
        )

    def clean_up(self, cutoff, now, batch=None):
        dead = [pid for pid in sorted(self.partitions) if self.dead(pid, cutoff, now)][:batch]
        for pid in dead:
            del self.partitions[pid]
            self.history.append((pid, PARTITION_DELETED, 0))
        return len(dead)

    # --- what is compared -------------------------------------------------------------------

    def history_totals(self):
        """{(partition, type): (rows, messages)}"""
        totals = {}
        for pid, kind, messages in self.history:
            rows, before = totals.get((pid, kind), (0, 0))
            totals[(pid, kind)] = (rows + 1, before + messages)
        return totals
