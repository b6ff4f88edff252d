"""Field cases of cycles that have little or nothing to do: what they read, write and send.

B20, B21, B48, B52, B56, and B44, L9, L19 by what is reported. Buffers and rows, not milliseconds.
"""

import time

import pytest

from cycle import support
from pg import bulk, qret
from pg.cluster import Cluster

HOT = ("log_segments", "log_txns", "log_partitions", "log_consumers", "log_dlq", "retention_floors")
AGE = 40 * support.DAY


def ours(db):
    return db.one(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        " AND application_name = 'libqretention'"
    )


def flushed(db):
    """Until every statistic is in: other backends hand in theirs at the latest when they end."""
    assert support.eventually(lambda: ours(db) == 0)
    if db.one("SELECT current_setting('server_version_num')::int") >= 150000:
        db.sql("SELECT pg_stat_force_next_flush()")
    else:
        time.sleep(1.1)
    db.sql("SELECT pg_stat_clear_snapshot()")


def sequential(db):
    return dict(
        db.sql(
            "SELECT relname, seq_tup_read FROM pg_stat_user_tables WHERE schemaname = 'queen'"
            " AND relname = ANY (%s)",
            list(HOT),
        )
    )


def crowd(db):
    """3,000 partitions of which some have work for every phase."""
    queue_id = bulk.queue(
        db,
        retention_enabled=True,
        retention_seconds=3 * support.HOUR,
        completed_retention_seconds=support.HOUR,
        max_wait_time_seconds=support.DAY,
        dedup_window_seconds=60,
    )
    ids = bulk.partitions(db, queue_id, 3000, AGE)
    bulk.segments(db, ids[:20], 100, 2 * support.DAY)
    bulk.segments(db, ids[20:500], 3, 2 * support.HOUR)
    bulk.consumer(db, ids[20:200], committed=2, age_seconds=AGE)
    bulk.consumer(db, ids[200:400], committed=-1, age_seconds=AGE)
    bulk.segments(db, ids[500:2000], 1)
    db.sql(
        "INSERT INTO queen.log_dlq (partition_id) SELECT id FROM unnest(%s::uuid[]) AS id",
        ids[2000:2500],
    )


SITUATIONS = {
    "fresh statistics": "ANALYZE",
    "no statistics": "UPDATE pg_class SET reltuples = -1, relpages = 0"
    " WHERE relnamespace = 'queen'::regnamespace",
    "generic plans": "ANALYZE",
}


def floors_indexes(db):
    return {
        row[0]
        for row in db.sql(
            "SELECT indexrelid::regclass::text FROM pg_index"
            " WHERE indrelid = 'queen.retention_floors'::regclass AND NOT indisprimary"
        )
    }


@pytest.mark.parametrize("work_list", ["due", "scan"])
@pytest.mark.parametrize("situation", SITUATIONS)
def test_no_phase_reads_a_table_from_end_to_end(db, situation, work_list):
    """B21: every statement of a cycle, whatever the planner knows or is told.

    A page of the scan is a third of the partitions here, so it may sort them; at 100,000 it must
    not, which tests/sql looks at.
    """
    crowd(db)
    db.sql(SITUATIONS[situation])
    if situation == "generic plans":
        db.sql(f"ALTER DATABASE \"{db.name}\" SET plan_cache_mode = 'force_generic_plan'")
    flushed(db)
    before = sequential(db)
    with qret.Context(db.dsn, work_list=work_list) as context:
        report = context.cycle()
        assert report["segments_deleted"] == 20 * 100 + 180 * 3
        assert report["txns_purged"] == 20 * 100 + 480 * 3
        assert report["partitions_deleted"] > 400
        context.cycle()
    flushed(db)
    after = sequential(db)
    if work_list == "scan":
        del before["log_partitions"], after["log_partitions"]
    assert after == before


def test_first_run_needs_no_index_but_the_keys(db):
    """B20: a great backlog that no index helps with, then an install that puts ours back."""
    bulk.backlog(db, 3, 10_000)
    ours = floors_indexes(db)
    assert len(ours) >= 3
    db.sql("DROP INDEX " + ", ".join(sorted(ours)))
    flushed(db)
    before = sequential(db)
    with qret.Context(db.dsn) as context:
        assert context.cycle()["segments_deleted"] == 30_000
    flushed(db)
    after = sequential(db)
    for table in ("log_segments", "log_txns"):
        assert after[table] == before[table], table
    with qret.Context(db.dsn) as context:
        context.install("log")
    assert floors_indexes(db) == ours


def touched(db):
    """Buffers of the log's tables and indexes that anyone has read."""
    flushed(db)
    return db.one(
        "SELECT sum(heap_blks_hit + heap_blks_read + coalesce(idx_blks_hit + idx_blks_read, 0)"
        " + coalesce(toast_blks_hit + toast_blks_read, 0)) FROM pg_statio_user_tables"
        " WHERE schemaname = 'queen'"
    )


@pytest.mark.parametrize("work_list", ["due", "scan"])
def test_idle_cycle_beside_many_live_rows_reads_next_to_nothing(db, work_list):
    """B48: nothing due is the cheapest case there is, however much lies there."""
    queue_id = bulk.queue(db, retention_enabled=True, retention_seconds=support.DAY)
    ids = bulk.partitions(db, queue_id, 5)
    bulk.segments(db, ids, 20_000)
    with qret.Context(db.dsn) as context:  # puts the new partitions in order
        context.cycle()
    before = touched(db)
    with qret.Context(db.dsn, work_list=work_list) as context:
        for _ in range(5):
            assert context.cycle()["segments_deleted"] == 0
    assert touched(db) - before <= 5 * 200


def written(db):
    flushed(db)
    return dict(
        db.sql(
            "SELECT relname, n_tup_ins + n_tup_upd + n_tup_del FROM pg_stat_user_tables"
            " WHERE n_tup_ins + n_tup_upd + n_tup_del > 0"
        )
    )


@pytest.mark.parametrize("gate", ["session", "lease"])
def test_idle_cycles_under_a_held_snapshot_write_a_lease_at_most(db, gate):
    """B52: nothing of ours is written by an idle cycle but the lease, and that stays cheap."""
    queue_id = bulk.queue(db, retention_enabled=True, retention_seconds=support.DAY)
    bulk.segments(db, bulk.partitions(db, queue_id, 50), 2)
    options = {"gate": gate, "interval_ms": 1}

    def cycles(count):
        """(cycles that led, buffers a cycle)"""
        before, led = touched(db), 0
        with qret.Context(db.dsn, **options) as context:
            for _ in range(count):
                led += context.try_cycle()[0] == qret.DONE
                time.sleep(0.002)
        return led, (touched(db) - before) / count

    cycles(3)
    holder = db.connect(autocommit=False)
    with holder.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        cursor.execute("SELECT 1")
    before = written(db)
    first, few = cycles(5)
    middle, _ = cycles(200)
    last, many = cycles(5)
    after = written(db)
    changed = {name: after[name] - before.get(name, 0) for name in after}
    changed = {name: count for name, count in changed.items() if count}
    assert set(changed) <= ({"retention_lease"} if gate == "lease" else set())
    # Claim, release, and the renewals that a lease of a millisecond needs.
    assert sum(changed.values()) <= 6 * (first + middle + last)
    # Versions of the one lease row that nobody may clean away share pages.
    assert many <= few + 40 + sum(changed.values()) // 4
    holder.rollback()


def test_partitions_that_nobody_consumes_cost_no_steps_after_the_first_look(db):
    """B56: due by age for ever; the consumer that catches up is served when its turn comes."""
    queue_id = bulk.queue(db, retention_enabled=True, completed_retention_seconds=60)
    ids = bulk.partitions(db, queue_id, 2000)
    bulk.segments(db, ids, 1, support.HALF_HOUR)
    bulk.consumer(db, ids, committed=-1)
    with qret.Context(db.dsn, partition_cleanup=False) as context:
        first = context.cycle()
        assert first["items_pinned"] == 2000
        for _ in range(2):
            later = context.cycle()
            assert later["partitions"] == 0
            assert later["items_pinned"] == 2000
        db.sql("UPDATE queen.log_consumers SET committed = 0 WHERE partition_id = %s", ids[1234])
        # A round looks at 500 a cycle, or at more where that would take longer than 45 s.
        served = [context.cycle() for _ in range(5)]
        assert sum(report["partitions"] for report in served) == 1
        assert sum(report["segments_deleted"] for report in served) == 1


def test_crowd_that_came_to_be_pinned_at_once_is_looked_at_within_a_minute(db):
    """L19: however many there were when the last round was counted."""
    queue_id = bulk.queue(db, retention_enabled=True, completed_retention_seconds=60)
    with qret.Context(db.dsn, partition_cleanup=False, interval_ms=5000) as context:
        context.cycle()
        ids = bulk.partitions(db, queue_id, 6000)
        bulk.segments(db, ids, 1, support.HALF_HOUR, txns=False)
        bulk.consumer(db, ids, committed=-1)
        assert context.cycle()["items_pinned"] == len(ids)
        db.sql("UPDATE queen.log_consumers SET committed = 0")
        # As many as a minute has.
        served = sum(context.cycle()["segments_deleted"] for _ in range(11))
        assert served == len(ids)


def test_borrowed_connection_to_another_server_is_looked_at_afresh(db):
    """L18: what a look on the first server told of transactions and floors is not true there."""
    with Cluster() as elsewhere:
        other = elsewhere.create_database(("broker", "log"))
        for each in (db, other):
            bulk.queue(each, retention_enabled=True, retention_seconds=60)
        behind = other.one("SELECT pg_current_xact_id()::text::bigint")
        while db.one("SELECT pg_current_xact_id()::text::bigint") < behind + 100:
            pass
        with qret.Context(partition_cleanup=False) as context:
            context.attach(db.connect())
            context.cycle()
            context.detach()
            ids = bulk.partitions(other, other.one("SELECT id::text FROM queen.queues"), 3)
            bulk.segments(other, ids, 2, support.HALF_HOUR)
            context.attach(other.connect())
            assert context.cycle()["segments_deleted"] == 6
            context.detach()
        other.close()


def test_step_by_hand_whose_candidates_are_all_locked_is_partial(db):
    """L9, B44: PARTIAL and not done, so a host comes back; and a cycle counts them."""
    ids = bulk.partitions(db, bulk.queue(db), 3, AGE)
    holder = db.connect(autocommit=False)
    with holder.cursor() as cursor:
        cursor.execute("SELECT 1 FROM queen.log_partitions FOR UPDATE")
    with qret.Context(db.dsn) as context:
        step = context.step(qret.PHASE_PARTITION_CLEANUP)
        assert (step["code"], step["done"], step["rows_deleted"]) == (qret.PARTIAL, 0, 0)
        report = context.cycle()
        assert (report["partitions_deleted"], report["items_locked"]) == (0, len(ids))
        holder.rollback()
        step = context.step(qret.PHASE_PARTITION_CLEANUP)
        assert (step["code"], step["done"], step["rows_deleted"]) == (qret.DONE, 1, 3)


def last_of(context, name):
    return [sample.value for sample in context.samples if sample.name == name][-1]


def test_rows_that_outlived_their_partition_are_reported(db):
    """L9, L19: in the log with the first of them, as a metric, and never deleted."""
    gone, kept = bulk.partitions(db, bulk.queue(db), 2, support.HOUR)
    for pid in (gone, kept):
        db.sql("INSERT INTO queen.log_dlq (partition_id) VALUES (%s)", pid)
    with qret.Context(db.dsn) as context:
        context.cycle()
        assert context.events("orphan") == []
        assert last_of(context, "qretention_orphan_partitions") == 0
    db.sql("DELETE FROM queen.log_partitions WHERE id = %s", gone)
    with qret.Context(db.dsn) as context:
        context.cycle()
        (line,) = context.events("orphan")
        assert f"partition={gone} partitions=1" in line.text
        assert last_of(context, "qretention_orphan_partitions") == 1
        context.cycle()  # no clean-up within the minute: what the last round found still stands
        assert last_of(context, "qretention_orphan_partitions") == 1
    assert bulk.count(db, "log_dlq") == 2


def test_future_heads_and_backed_off_items_are_metrics(db):
    """L19"""
    _, ids = bulk.backlog(db, 2, 2)
    db.sql(
        "UPDATE queen.log_segments SET created_at = now() + interval '1 day'"
        " WHERE partition_id = %s",
        ids[0],
    )
    support.fail_deletes_of(db, ids[1])
    with qret.Context(db.dsn) as context:
        context.try_cycle()
        assert context.events("future_head")
        assert last_of(context, "qretention_future_heads") >= 1
        assert last_of(context, "qretention_items_backed_off") == 1
