"""L17, the scan list: every partition once, by id, with its own queue's cutoffs; tenants; B66."""

import time

from cycle import support
from pg import bulk, qret
from pg.broker import Broker

SECOND_US = 1_000_000
TENANT = "aaaaaaaa-0000-0000-0000-000000000001"
OFF = dict(retention_enabled=False, dedup_window_seconds=0)


def test_worklist_has_every_partition_in_order(db):
    """More than one page of them, L17."""
    first, second = bulk.queue(db, "first"), bulk.queue(db, "second")
    ids = bulk.partitions(db, first, 3000) + bulk.partitions(db, second, 3000)
    queues = dict(db.sql("SELECT id::text, queue_id::text FROM queen.log_partitions"))
    with qret.Context(db.dsn, work_list="scan") as context:
        items = context.worklist()
    assert [item.partition_id for item in items] == sorted(ids)
    assert {item.partition_id: item.queue_id for item in items} == queues


def cutoffs_of(db, **policy):
    """(clock - cutoff) in seconds for each of the four, None where off."""
    queue_id = bulk.queue(db, **policy)
    bulk.partitions(db, queue_id, 1)
    with qret.Context(db.dsn, work_list="scan") as context:
        clock, structs = context.worklist_structs()
    (item,) = map(qret.item_of, structs)
    ages = [None if cut is None else (clock - cut) / SECOND_US for cut in item[2:]]
    db.sql("DELETE FROM queen.queues")
    return tuple(ages)


def test_worklist_cutoffs_follow_the_policy(db):
    on = dict(retention_enabled=True)
    assert cutoffs_of(db) == (None, None, 3600, None)
    assert cutoffs_of(db, retention_seconds=60, completed_retention_seconds=5, **OFF) == (
        None,
        None,
        900,
        None,
    )
    assert cutoffs_of(db, retention_seconds=60, **on) == (60, None, 3600, None)
    assert cutoffs_of(db, completed_retention_seconds=7200, **on) == (None, 7200, 7200, None)
    assert cutoffs_of(db, max_wait_time_seconds=30) == (None, None, 3600, 30)


def test_worklist_odd_policies_are_off(db):
    """L2: NULL, zero and negative mean off; a window beyond the calendar never deletes."""
    for value in (None, 0, -1, -2_147_483_648):
        odd = cutoffs_of(
            db,
            retention_enabled=True,
            retention_seconds=value,
            completed_retention_seconds=value,
            max_wait_time_seconds=value,
            dedup_window_seconds=0,
        )
        assert odd == (None, None, 900, None), value
    assert cutoffs_of(db, retention_enabled=None, retention_seconds=5)[0] is None
    huge = cutoffs_of(
        db,
        retention_enabled=True,
        retention_seconds=2_147_483_647,
        completed_retention_seconds=2_147_483_647,
        max_wait_time_seconds=2_147_483_647,
        dedup_window_seconds=2_147_483_647,
    )
    assert all(age is None or age == 2_147_483_647 for age in huge)


def test_worklist_limit(db):
    ids = bulk.partitions(db, bulk.queue(db), 10)
    with qret.Context(db.dsn, work_list="scan", worklist_limit=4) as context:
        assert [item.partition_id for item in context.worklist()] == ids[:4]


def test_worklist_empty(db):
    with qret.Context(db.dsn, work_list="scan") as context:
        assert context.worklist() == []
        report = context.cycle()
    assert report["steps"] <= 7  # none for partitions; clean-up and metrics look once a table
    assert report["segments_deleted"] == report["partitions_deleted"] == 0


def test_tenants_never_mix(db):
    """Two tenants, one queue name, opposite policies: each keeps to its own."""
    keep = bulk.queue(db, "orders", retention_enabled=True, retention_seconds=10 * support.DAY)
    drop = bulk.queue(db, "orders", TENANT, retention_enabled=True, retention_seconds=60)
    kept, dropped = bulk.partitions(db, keep, 3), bulk.partitions(db, drop, 3)
    bulk.segments(db, kept + dropped, 4, support.HALF_HOUR)
    with qret.Context(db.dsn) as context:
        report = context.cycle()
    assert (report["queues"], report["segments_deleted"]) == (1, 12)
    left = db.sql("SELECT DISTINCT partition_id::text FROM queen.log_segments")
    assert sorted(row[0] for row in left) == kept


def test_worklist_follows_a_partition_to_its_queue(db):
    """The join is by the partition's own queue_id, nothing else."""
    keep = bulk.queue(db, "keep", **OFF)
    _, ids = bulk.backlog(db, 1, 3)
    db.sql("UPDATE queen.log_partitions SET queue_id = %s WHERE id = %s", keep, ids[0])
    with qret.Context(db.dsn) as context:
        assert context.cycle()["segments_deleted"] == 0


def test_step_of_a_dropped_partition_is_done(db):
    """B66: dropped between list and step; done, no error, the next one runs."""
    bulk.backlog(db, 2, 3)
    with qret.Context(db.dsn) as context:
        _, structs = context.worklist_structs()
        gone = qret.item_of(structs[0]).partition_id
        db.sql("DELETE FROM queen.log_partitions WHERE id = %s", gone)
        for phase in (qret.PHASE_RETENTION, qret.PHASE_TXNS_PURGE, qret.PHASE_MAX_WAIT):
            result = context.step(phase, structs[0])
            assert (result["code"], result["rows_deleted"], result["done"]) == (qret.DONE, 0, 1)
        assert context.drain(qret.PHASE_RETENTION, structs[1]) == 3


def test_cycle_goes_on_when_partitions_vanish(db):
    """B66: half of the listed partitions go, and then their queue, while the cycle runs."""
    _, ids = bulk.backlog(db, 40, 2)
    broker = Broker(db)
    doomed = bulk.queue(db, "doomed", retention_enabled=True, retention_seconds=60)
    bulk.segments(db, bulk.partitions(db, doomed, 20), 2, support.HALF_HOUR)
    with qret.Context(db.dsn, batch_size=1) as context:
        context.begin()
        while not context.report()["segments_deleted"]:
            if context.process() == qret.WAIT:
                context.wait()
        db.sql("DELETE FROM queen.log_partitions WHERE id = ANY (%s::uuid[])", ids[20:])
        assert broker.delete_queue("doomed")["existed"]
        assert support.finish(context) == qret.DONE
        assert context.report()["items_failed"] == 0
    assert bulk.count(db) == 0


def test_cycle_touches_nothing_else(db):
    """Dead letters, traces, queues, and partitions that hold something stay as they are."""
    queue_id, ids = bulk.backlog(db, 4, 2, age_seconds=40 * support.DAY)
    db.sql(
        'INSERT INTO queen.log_dlq (partition_id, consumer_group, "offset", payload)'
        " VALUES (%s, 'g', 0, '{}')",
        ids[0],
    )
    db.sql("INSERT INTO queen_streams.queries (name) VALUES ('q')")
    db.sql(
        "INSERT INTO queen_streams.state (query_id, partition_id, key, value)"
        " SELECT id, %s, 'k', '{}' FROM queen_streams.queries",
        ids[1],
    )
    bulk.segments(db, ids[2:3], 1)
    traces = db.sql(
        "SELECT column_name FROM information_schema.columns WHERE table_schema = 'queen'"
        " AND table_name = 'message_traces' AND column_name = 'partition_id'"
    )
    if traces:
        db.sql(
            "INSERT INTO queen.message_traces (partition_id, transaction_id) VALUES (%s, 't')",
            ids[3],
        )
    with qret.Context(db.dsn) as context:
        report = context.cycle()
    assert (report["segments_deleted"], report["partitions_deleted"]) == (8, 1)
    left = db.sql("SELECT id::text FROM queen.log_partitions ORDER BY id")
    assert [row[0] for row in left] == ids[:3]
    assert db.one("SELECT count(*) FROM queen.queues WHERE id = %s", queue_id) == 1
    assert bulk.count(db, "log_dlq") == 1
    assert db.one("SELECT count(*) FROM queen_streams.state") == 1
    assert bulk.count(db, "log_segments") == 1
    assert bulk.count(db, "message_traces") == len(traces)


def test_history_of_a_deleted_partition_outlives_it(db):
    _, ids = bulk.backlog(db, 1, 2, age_seconds=40 * support.DAY)
    with qret.Context(db.dsn) as context:
        assert context.cycle()["partitions_deleted"] == 1
    rows = db.sql(
        "SELECT retention_type, messages_deleted FROM queen.retention_history"
        " WHERE partition_id = %s ORDER BY 1",
        ids[0],
    )
    assert rows == [("__partition_deleted__", 0), ("retention", 2)]


def test_partition_cleanup_runs_once_a_minute(db):
    """A partition that becomes eligible right after a cycle waits for the next minute."""
    queue_id = bulk.queue(db)
    with qret.Context(db.dsn) as context:
        context.cycle()
        bulk.partitions(db, queue_id, 1, 40 * support.DAY)
        assert context.cycle()["partitions_deleted"] == 0
        context.set(partition_cleanup=False)
    with qret.Context(db.dsn, partition_cleanup=False) as context:
        assert context.cycle()["partitions_deleted"] == 0
    with qret.Context(db.dsn) as context:
        assert context.cycle()["partitions_deleted"] == 1


def test_cycle_ages_out_metrics(db):
    """Phase 5 with a bound on each statement, L10."""
    db.sql(
        "INSERT INTO queen.retention_history (retention_type, executed_at)"
        " SELECT 'retention', now() - make_interval(days => 91) FROM generate_series(1, 25)"
    )
    db.sql(
        "INSERT INTO queen.retention_history (retention_type, executed_at)"
        " VALUES ('retention', now() - make_interval(days => 89))"
    )
    with qret.Context(db.dsn, batch_size=10) as context:
        started = time.monotonic()
        assert context.cycle()["metrics_purged"] == 25
        assert time.monotonic() - started < 10
    assert bulk.count(db, "retention_history") == 1
