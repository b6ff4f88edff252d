"""Field cases of draining, with the library on a real server: too little time, too much to do,
somebody in the way.

B04, B15, B17, B18, B19, B44, B45, B46, B50, B89.
"""

import threading

import psycopg2
import psycopg2.errors
import pytest

from cycle import support
from pg import bulk, qret

KEPT = {"retention_enabled": True, "retention_seconds": 60}


def slow_rows(db, seconds):
    """Every deleted segment takes that long; it comes on top of a batch that times out."""
    db.sql(
        f"""CREATE FUNCTION public.slow() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            PERFORM pg_sleep({seconds});
            RETURN OLD;
        END $$"""
    )
    db.sql(
        "CREATE TRIGGER slow BEFORE DELETE ON queen.log_segments"
        " FOR EACH ROW EXECUTE FUNCTION public.slow()"
    )


def sizes(db, relation="log_segments"):
    """Rows of each deleting transaction, in order."""
    return [rows for _, rows, *_ in support.deletes(db, relation)]


def test_tight_statement_timeout_makes_progress_every_cycle(db):
    """B04, B50: the first batch cannot finish in time, and nothing was ever analyzed.

    Each cycle gets somewhere, by batches that fit; once rows are fast again so are the batches.
    """
    bulk.backlog(db, 1, 2000)
    support.spy_on_deletes(db)
    slow_rows(db, 0.002)
    db.sql("UPDATE pg_class SET reltuples = -1, relpages = 0 WHERE relname = 'log_segments'")
    left = bulk.count(db)
    with qret.Context(db.dsn, statement_timeout_ms=120, cycle_budget_ms=1200) as context:
        for _ in range(2):
            code, report = context.try_cycle()
            assert code in (qret.BUDGET, qret.PARTIAL), context.message
            assert 0 < report["segments_deleted"] < left
            left -= report["segments_deleted"]
        slow = sizes(db)
        assert max(slow) < 100
        db.sql("DROP TRIGGER slow ON queen.log_segments")
        context.set(cycle_budget_ms=None)
        assert context.cycle()["segments_deleted"] == left
    assert max(sizes(db)) > 2 * max(slow)


def test_batch_that_timed_out_is_not_tried_again_unchanged(cluster, db):
    """B17: what failed is halved until it goes through, whatever it takes."""
    bulk.backlog(db, 1, 100)
    db.sql(
        """CREATE FUNCTION public.tried() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            RAISE LOG 'tried % rows', (SELECT count(*) FROM gone);
            IF (SELECT count(*) FROM gone) > 10 THEN
                PERFORM pg_sleep(5);
            END IF;
            RETURN NULL;
        END $$"""
    )
    db.sql(
        "CREATE TRIGGER tried AFTER DELETE ON queen.log_segments REFERENCING OLD TABLE AS gone"
        " FOR EACH STATEMENT EXECUTE FUNCTION public.tried()"
    )
    start = cluster.log_size()
    with qret.Context(db.dsn, statement_timeout_ms=150) as context:
        assert context.cycle()["segments_deleted"] == 100
    tried = [
        int(line.split("tried ")[1].split()[0])
        for line in cluster.log(start).splitlines()
        if "tried " in line and "rows" in line.split("tried ")[1]
    ]
    assert tried[:5] == [100, 50, 25, 12, 6]
    # Growth after a success may overshoot; what fails then is halved as well.
    assert all(after < before for before, after in zip(tried, tried[1:]) if before > 10)


class Pusher(threading.Thread):
    """Takes the partition's row lock 50 times a second, and waits for it 100 ms at most."""

    def __init__(self, db, partition_id):
        super().__init__()
        self.connection = db.connect(autocommit=False)
        self.partition_id = partition_id
        self.over = threading.Event()
        self.pushes = self.late = 0

    def run(self):
        with self.connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = '100ms'")
            self.connection.commit()
            while not self.over.wait(0.02):
                try:
                    cursor.execute(
                        "UPDATE queen.log_partitions SET last_write_at = now() WHERE id = %s",
                        (self.partition_id,),
                    )
                    self.connection.commit()
                    self.pushes += 1
                except psycopg2.errors.LockNotAvailable:
                    self.connection.rollback()
                    self.late += 1

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *exc):
        self.over.set()
        self.join()
        self.connection.close()


@pytest.mark.parametrize("options", [{}, {"batch_size": 1000000}])
def test_pushes_beside_a_drain_of_their_partition(db, options):
    """B15: at the default batch, and at an absurd one, which time makes small.

    Rows are slow, so size matters.
    """
    _, (pid,) = bulk.backlog(db, 1, 800)
    slow_rows(db, 0.001)
    support.spy_on_deletes(db)
    with Pusher(db, pid) as pusher:
        with qret.Context(db.dsn, **options) as context:
            for _ in range(3):
                _, report = context.try_cycle()
                if bulk.count(db) == 0:
                    break
    assert bulk.count(db) == 0
    assert pusher.pushes > 20
    assert pusher.late <= 3  # the very first batch is a guess
    assert len(sizes(db)) > 10
    assert max(sizes(db)[2:]) <= 50


def test_pushes_beside_a_drain_that_never_looks_at_the_time(db):
    """B15, the other way round: the same pusher is late beside batches of 500 under the lock."""
    _, (pid,) = bulk.backlog(db, 1, 1000)
    slow_rows(db, 0.001)
    with Pusher(db, pid) as pusher:
        with db.connect().cursor() as cursor:
            for _ in range(2):
                cursor.execute(
                    "SELECT queen.log_retention_step_v1(%s, now() - interval '1 minute',"
                    " NULL, 500)",
                    (pid,),
                )
    assert pusher.late > 5


def test_policy_made_tighter_drains_over_cycles(db):
    """B18: from 90 days to one, with three months of backlog; every statement stays bounded."""
    queue_id = bulk.queue(db, retention_enabled=True, retention_seconds=90 * support.DAY)
    ids = bulk.partitions(db, queue_id, 4, 89 * support.DAY)
    for age in range(89, 1, -4):
        bulk.segments(db, ids, 250, age * support.DAY, txns=False)
    everything = bulk.count(db)
    support.spy_on_deletes(db)
    with qret.Context(db.dsn, batch_size=400) as context:
        assert context.cycle()["segments_deleted"] == 0
        context.set(cycle_budget_ms=50)
        db.sql("UPDATE queen.queues SET retention_seconds = %s", support.DAY)
        deleted = cycles = 0
        while deleted < everything:
            code, report = context.try_cycle()
            assert code in (qret.BUDGET, qret.DONE)
            assert report["segments_deleted"] > 0
            deleted += report["segments_deleted"]
            cycles += 1
    assert cycles > 1
    assert bulk.count(db) == 0
    assert max(sizes(db)) <= 400


def test_budget_smaller_than_a_batch_still_gets_one(db):
    """B19: at least one batch, over within budget and a batch, and what is left is told."""
    bulk.backlog(db, 1, 500)
    support.slow_deletes(db, 0.3)
    with qret.Context(db.dsn, cycle_budget_ms=100, batch_size=100) as context:
        left = 500
        for _ in range(2):
            code, report = context.try_cycle()
            assert code == qret.BUDGET
            assert 0 < report["segments_deleted"] < left
            left -= report["segments_deleted"]
            assert report["steps"] == 1
            assert report["elapsed_us"] < 2_000_000
            # Half an hour old, and kept for a minute.
            assert 1700_000_000 < report["oldest_overdue_us"] < 1800_000_000
        db.sql("ALTER TABLE queen.log_partitions RENAME TO elsewhere")
        code, failed = context.try_cycle()
        assert code == qret.ERR_SCHEMA
        assert failed["oldest_overdue_us"] == report["oldest_overdue_us"]  # the last that is known
        db.sql("ALTER TABLE queen.elsewhere RENAME TO log_partitions")
        context.stop()
        code, refused = context.try_cycle()
        assert code == qret.STOPPED
        assert refused["oldest_overdue_us"] == report["oldest_overdue_us"]
        context.resume()
        db.sql("DROP TRIGGER dawdle ON queen.log_segments")
        context.set(cycle_budget_ms=0)
        assert context.cycle()["oldest_overdue_us"] == 0


def test_one_locked_partition_of_a_thousand_is_served_later(db):
    """B44: the others go at once; the locked one is counted, and goes in a later cycle."""
    _, ids = bulk.backlog(db, 1000, 1)
    holder = db.connect(autocommit=False)
    with holder.cursor() as cursor:
        cursor.execute("SELECT 1 FROM queen.log_partitions WHERE id = %s FOR UPDATE", (ids[499],))
    with qret.Context(db.dsn, lock_timeout_ms=100, late_lock_ms=20) as context:
        code, report = context.try_cycle()
        assert code == qret.PARTIAL
        assert (report["segments_deleted"], report["items_locked"]) == (999, 1)
        assert db.sql("SELECT DISTINCT partition_id::text FROM queen.log_segments") == [(ids[499],)]
        holder.rollback()
        assert context.cycle()["segments_deleted"] == 1


def test_great_backlog_goes_in_batches_and_stops_between_two(db):
    """B45: no statement deletes more than a batch; after a stop no more than a batch follows."""
    bulk.backlog(db, 8, 5_000, age_seconds=2 * support.HOUR)
    for table in ("log_segments", "log_txns"):
        support.spy_on_deletes(db, table)
    with qret.Context(db.dsn, batch_size=500) as context:
        steps = []

        def on_metric(sample):
            steps.append(sample)
            if len(steps) == 40:  # by then batches are large, and eight could be in flight
                context.stop()

        context.on_metric = on_metric
        code, report = context.try_cycle()
        assert code == qret.STOPPED
        before = sum(sizes(db)[:40])
        assert before <= report["segments_deleted"] <= before + 500
        context.on_metric = None
        context.resume()
        context.cycle()
    assert bulk.count(db) == bulk.count(db, "log_txns") == 0
    assert max(sizes(db) + sizes(db, "log_txns")) <= 500


def test_arrivals_of_three_batches_an_interval_are_kept_up_with(db):
    """B46: a cycle goes on until nothing is due; one that may not says how far it is behind."""
    _, ids = bulk.backlog(db, 1, 30)
    with qret.Context(db.dsn, batch_size=10) as context:
        for _ in range(3):
            assert context.cycle()["segments_deleted"] == 30
            bulk.segments(db, ids, 30, support.HALF_HOUR)
        assert context.report()["oldest_overdue_us"] == 0
        support.slow_deletes(db, 0.05)
        context.set(cycle_budget_ms=1, batch_size=1)
        behind = []
        for _ in range(3):
            code, report = context.try_cycle()
            assert code == qret.BUDGET
            behind.append(report["oldest_overdue_us"])
            bulk.segments(db, ids, 30, support.HALF_HOUR)
            db.sql("UPDATE queen.log_segments SET created_at = created_at - interval '1 minute'")
    assert behind[0] > 0
    assert behind == sorted(behind) and behind[2] > behind[0] + 60_000_000


def test_flood_of_answers_does_not_block_the_pipeline(db):
    """B89: many steps in flight, each answered with 60 kB of notices; both sides keep reading."""
    bulk.backlog(db, 2000, 1)
    db.sql(
        """CREATE FUNCTION public.talk() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            FOR n IN 1..3 LOOP
                RAISE WARNING '%', repeat('x', 20000);
            END LOOP;
            RETURN OLD;
        END $$"""
    )
    db.sql(
        "CREATE TRIGGER talk BEFORE DELETE ON queen.log_segments"
        " FOR EACH ROW EXECUTE FUNCTION public.talk()"
    )
    with qret.Context(db.dsn, level=qret.LOG_DEBUG) as context:
        report = context.cycle()
        assert report["segments_deleted"] == 2000
        # They were in flight together, and the flood was real.
        assert report["round_trips"] < 1500
        assert len(context.events("notice")) > 100
