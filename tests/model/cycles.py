"""One retention cycle, by three ways, each compared with the reference model's.

By the SQL functions (call by call), by steps of the library, and by a whole cycle of the library.
"""

from model import reference
from model.reference import DAY
from pg import qret
from pg.broker import from_us

BATCHES = [1, 2, 3, 5, 1000]
DAYS = [1, 2, 30]


def choose(world):
    return world.random.choice(BATCHES), world.random.choice(DAYS)


class SqlCycle:
    """The functions of one version beside the model: every call must do what the model does."""

    def __init__(self, world, version=1):
        self.world, self.model, self.broker = world, world.model, world.broker
        self.version = version
        self.batch, self.days = choose(world)
        self.now = world.telling_moment(self.days)

    def call(self, function, *arguments):
        marks = ", ".join(["%s"] * len(arguments))
        return self.broker.one(f"SELECT {{q}}.{function}_v{self.version}({marks})", *arguments)

    def run(self):
        note = "sql cycle", "now", self.now, "batch", self.batch, "days", self.days
        self.world.note(*note)
        for pid in sorted(self.model.partitions):
            cuts = self.model.cutoffs(pid, self.now)
            both = from_us(cuts.every), from_us(cuts.completed)
            self.segments(pid, "log_retention_step", cuts.every, cuts.completed, None, *both)
        for pid in sorted(self.model.partitions):
            self.sidecar(pid, self.model.cutoffs(pid, self.now).txns)
        for pid in sorted(self.model.partitions):
            cut, kind = self.model.cutoffs(pid, self.now).max_wait, reference.EVICTION
            self.segments(pid, "log_evict_max_wait_step", cut, None, kind, from_us(cut))
        self.clean_up(self.now - self.days * DAY)
        self.world.compare()

    def segments(self, pid, function, every, completed, kind, *arguments):
        deleted = 1
        while deleted:
            result = self.call(function, pid, *arguments, self.batch)
            deleted = self.model.delete_batch(pid, every, completed, self.batch, kind)
            left = self.model.deletable(pid, every, completed)[1]
            self.world.expect(
                f"{function} on {pid}",
                (result["deleted"], result["new_log_start"], result["done"]),
                (deleted, self.model.partitions[pid].log_start, left == 0),
            )

    def sidecar(self, pid, cutoff):
        deleted = 1
        while deleted:
            result = self.call("log_txns_purge_step", pid, from_us(cutoff), self.batch)
            deleted = self.model.purge_sidecar(pid, cutoff, self.batch)
            left = reference.stale_prefix(self.model.partitions[pid].txns, cutoff)
            found = result["deleted"], result["done"]
            self.world.expect(f"log_txns_purge_step on {pid}", found, (deleted, left == 0))

    def clean_up(self, cutoff):
        result, after = {"done": False}, None
        while not result["done"]:
            now = self.world.now()
            arguments = [from_us(cutoff), self.batch] + ([after] if self.version == 2 else [])
            result = self.call("log_partition_cleanup_step", *arguments)
            deleted = self.model.clean_up(cutoff, now, self.batch)
            self.world.expect("partitions cleaned up", result["deleted"], deleted)
            after = result.get("last")
            if not deleted and not result["done"] and self.version == 1:
                self.world.fail(f"the clean-up makes no progress and is not done: {result}")
        left = self.model.clean_up(cutoff, self.world.now())
        self.world.expect("partitions left when it is done", 0, left)


def sql_v1(world):
    SqlCycle(world, 1).run()


def sql_v2(world):
    SqlCycle(world, 2).run()


def library_steps(world):
    """qret_step by hand, with cutoffs of the model's making."""
    batch, days = choose(world)
    now = world.telling_moment(days)
    world.note("library steps", "now", now, "batch", batch, "days", days)
    model = world.model
    with qret.Context(world.db.dsn, batch_size=batch, partition_cleanup_days=days) as context:
        for phase in (qret.PHASE_RETENTION, qret.PHASE_TXNS_PURGE, qret.PHASE_MAX_WAIT):
            for pid in sorted(model.partitions):
                cuts = model.cutoffs(pid, now)
                item = qret.work_item(
                    pid,
                    model.partitions[pid].queue,
                    all=cuts.every,
                    completed=cuts.completed,
                    txns=cuts.txns,
                    max_wait=cuts.max_wait,
                )
                context.drain(phase, item)
        context.drain(qret.PHASE_PARTITION_CLEANUP)
        real_now = world.now()
    model.cycle(now, batch, days, cleanup_now=real_now)
    world.compare(exact_history=False)


def library_due_cycle(world):
    """The same with the due list, which must be told of rows that were aged by hand."""
    world.broker.one("SELECT {q}.retention_floors_reset_v1()")
    library_cycle(world, work_list="due")


def library_cycle(world, context=None, work_list="scan", **options):
    """A whole cycle of the library, then the model's at the clock that the library reports."""
    if context is None:
        with qret.Context(world.db.dsn) as context:
            library_cycle(world, context, work_list, **options)
            return
    batch, days = choose(world)
    world.note("library cycle", "batch", batch, "days", days, work_list, options)
    context.set(batch_size=batch, partition_cleanup_days=days, work_list=work_list, **options)
    report = context.cycle()
    counts = world.model.cycle(report["clock_us"], batch, days)
    world.expect("report", {name: report[name] for name in counts}, counts)
    world.compare(exact_history=False)
