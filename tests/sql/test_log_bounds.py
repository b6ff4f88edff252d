"""What the steps read: bounded by the batch, whatever the statistics and whatever lies dead (L4)."""

import json

import pytest

from sql.log_support import DAY, Log, client_statement

MANY = 20000
# A lock, an audit row and look-ups of the catalogs, in a session that has run the step before.
FIXED = 40


@pytest.fixture
def log(db):
    return Log(db)


def fill(log, pid, count, age):
    for table, column in (("log_segments", "blob"), ("log_txns", "hashes")):
        log.sql(
            f"INSERT INTO {{q}}.{table} (partition_id, base_offset, end_offset, created_at, {column})"
            " SELECT %s, n * 10, n * 10 + 9, %s, 'x' FROM generate_series(0, %s - 1) AS n",
            pid,
            log.at(age),
            count,
        )
    log.sql("UPDATE {q}.log_partitions SET last_offset = %s WHERE id = %s", count * 10 - 1, pid)


def buffers(log, call, *args):
    """Buffers that a call of a function touches, after it has run once in this session."""
    plan = log.one(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT {{q}}.{call}", *args)
    plan = plan if isinstance(plan, list) else json.loads(plan)
    top = plan[0]["Plan"]
    return top["Shared Hit Blocks"] + top["Shared Read Blocks"]


STALE_STATISTICS = "stale statistics"
SITUATIONS = ["no statistics", "statistics", STALE_STATISTICS, "generic plan", "other partitions"]


def prepare(log, situation):
    """A partition of MANY stale segments in the situation named; returns its id."""
    if situation == STALE_STATISTICS:
        log.sql("ANALYZE {q}.log_segments, {q}.log_txns, {q}.log_consumers, {q}.log_partitions")
    if situation == "generic plan":
        log.sql("SET plan_cache_mode = force_generic_plan")
    if situation == "other partitions":
        for _ in range(3):
            fill(log, log.partition(), MANY, 50 * DAY)
    pid = log.partition()
    fill(log, pid, MANY, 50 * DAY)
    if situation in ("statistics", "other partitions"):
        log.sql("ANALYZE")
    return pid


@pytest.mark.parametrize("situation", SITUATIONS)
def test_L4_an_idle_step_reads_a_handful(log, situation):
    pid = prepare(log, situation)
    log.consumer(pid, committed=-1)
    calls = [
        ("log_retention_step_v1(%s, %s, NULL, 1000)", log.at(60 * DAY)),
        ("log_retention_step_v1(%s, NULL, %s, 1000)", log.at(60 * DAY)),
        ("log_retention_step_v1(%s, NULL, %s, 1000)", log.at(DAY)),  # stale, but not consumed
        ("log_txns_purge_step_v1(%s, %s, 1000)", log.at(60 * DAY)),
        ("log_evict_max_wait_step_v1(%s, %s, 1000)", log.at(60 * DAY)),
    ]
    for call, cutoff in calls:
        buffers(log, call, pid, cutoff)
        assert buffers(log, call, pid, cutoff) <= FIXED, call


@pytest.mark.parametrize("situation", SITUATIONS)
def test_L4_a_deleting_step_reads_its_batch(log, situation):
    pid = prepare(log, situation)
    for call in (
        "log_retention_step_v1(%s, %s, NULL, 100)",
        "log_txns_purge_step_v1(%s, %s, 100)",
    ):
        for _ in range(8):  # past the fifth call, plpgsql may turn to a generic plan
            used = buffers(log, call, pid, log.at(DAY))
        # A row is read twice and marked once; its index entries come with it.
        assert used <= 5 * 100 + FIXED, call


def test_L4_B48_the_first_fresh_segment_ends_the_scan(log):
    pid = log.partition()
    fill(log, pid, MANY, DAY)
    log.sql("ANALYZE {q}.log_segments")
    call = "log_retention_step_v1(%s, %s, NULL, 100000)"
    buffers(log, call, pid, log.at(50 * DAY))
    assert buffers(log, call, pid, log.at(50 * DAY)) <= FIXED


def test_L4_B07_dead_entries_below_the_watermark_are_not_crawled(log):
    pid = log.partition()
    fill(log, pid, MANY, 50 * DAY)
    log.segments(pid, [0], base=MANY * 10)
    holder = log.db.connect(autocommit=False)
    with holder.cursor() as cursor:  # nothing that is deleted from here on can be cleaned away
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        cursor.execute("SELECT 1")
    assert log.retain(pid, stale=DAY, rows=MANY)["deleted"] == MANY
    assert log.purge(pid, DAY, rows=MANY)["deleted"] == MANY
    for call in (
        "log_retention_step_v1(%s, %s, NULL, 1000)",
        "log_txns_purge_step_v1(%s, %s, 1000)",
    ):
        buffers(log, call, pid, log.at(DAY))
        assert buffers(log, call, pid, log.at(DAY)) <= FIXED, call
    holder.rollback()


def test_L4_L9_a_vetoed_partition_is_not_crawled_by_the_cleanup(log):
    pid = log.partition()
    fill(log, pid, MANY, 50 * DAY)
    log.dead_letter(pid)
    holder = log.db.connect(autocommit=False)
    with holder.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        cursor.execute("SELECT 1")
    log.retain(pid, stale=DAY, rows=MANY)
    for call in (
        "log_partition_cleanup_step_v2(%s, 1000, NULL)",
        "log_partition_cleanup_step_v1(%s, 1000)",
    ):
        buffers(log, call, log.at(30 * DAY))
        assert buffers(log, call, log.at(30 * DAY)) <= 2 * FIXED, call
    holder.rollback()


@pytest.mark.parametrize("analyzed", [False, True])
def test_L4_L9_the_cleanup_with_a_cursor_bounds_what_it_scans(log, analyzed):
    queue = log.queue()
    log.sql(
        "INSERT INTO {q}.log_partitions (queue_id, name, created_at, last_write_at)"
        " SELECT %s, n::text, %s, %s FROM generate_series(1, 20000) AS n",
        queue,
        log.at(90 * DAY),
        log.at(80 * DAY),
    )
    log.sql(
        "INSERT INTO {q}.log_dlq (partition_id) SELECT id FROM {q}.log_partitions",
    )
    if analyzed:
        log.sql("ANALYZE")
    call = "log_partition_cleanup_step_v2(%s, 100, NULL)"
    for _ in range(7):
        used = buffers(log, call, log.at(30 * DAY))
    # 2000 partitions looked at, some ten buffers each; 20000 lie there.
    assert used <= 2000 * 12
    assert log.cleanup_v2(rows=100)["done"] is False


def test_L10_the_metrics_purge_is_bounded_under_every_plan(log):
    log.sql(
        "INSERT INTO {q}.worker_metrics (bucket_time) SELECT %s - n * interval '1 minute'"
        " FROM generate_series(1, 20000) AS n",
        log.clock,
    )
    statement = client_statement(
        "metrics_purge.sql", table='"queen"."worker_metrics"', column='"bucket_time"'
    )
    for mode in ("auto", "force_generic_plan", "force_custom_plan"):
        log.sql(f"SET plan_cache_mode = {mode}")
        assert log.execute(statement, log.clock, 100)[0][0] == 100
