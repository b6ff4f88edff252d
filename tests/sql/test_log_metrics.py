"""The metrics purge, the retention series and the removal of a queue."""

import json
import uuid

import psycopg2
import pytest

from sql.log_support import DAY, Log, client_statement

TABLES = [
    ("worker_metrics", "bucket_time"),
    ("queue_lag_metrics", "bucket_time"),
    ("queue_parked_replica", "bucket_time"),
    ("retention_history", "executed_at"),
    ("system_metrics", "timestamp"),
]
COUNTS = ["deletedMetrics", "deletedLagMetrics", "deletedParkedReplica", "deletedRetentionHistory"]


@pytest.fixture
def log(db):
    return Log(db)


def sample(log, table, column, *ages):
    for age in ages:
        log.sql(f'INSERT INTO {{q}}.{table} ("{column}") VALUES (%s)', log.at(age))


def count(log, table):
    return log.one(f"SELECT count(*) FROM {{q}}.{table}")


def purge(log, table, column, cutoff, rows):
    statement = client_statement(
        "metrics_purge.sql", table=f'{log.schema}."{table}"', column=f'"{column}"'
    )
    return log.execute(statement, cutoff, rows)[0][0]


@pytest.mark.parametrize("table, column", TABLES)
def test_L10_a_purge_deletes_the_oldest_and_no_more_than_asked(log, table, column):
    sample(log, table, column, 10 * DAY, 30 * DAY, 20 * DAY, 5 * DAY, 0)
    assert purge(log, table, column, log.at(5 * DAY), 2) == 2
    left = log.sql(f'SELECT "{column}" FROM {{q}}.{table} ORDER BY 1')
    assert left == [(log.at(10 * DAY),), (log.at(5 * DAY),), (log.at(0),)]
    assert purge(log, table, column, log.at(5 * DAY), 2) == 1
    assert purge(log, table, column, log.at(5 * DAY), 2) == 0  # equality is kept


@pytest.mark.parametrize("rows", [None, 0, -1, -2147483648])
def test_L10_an_absurd_bound_counts_as_one(log, rows):
    sample(log, "worker_metrics", "bucket_time", 30 * DAY, 20 * DAY, 10 * DAY)
    assert purge(log, "worker_metrics", "bucket_time", log.at(DAY), rows) == 1


def test_L2_L10_a_null_cutoff_purges_nothing(log):
    sample(log, "worker_metrics", "bucket_time", 30 * DAY)
    assert purge(log, "worker_metrics", "bucket_time", None, 100) == 0


def test_L10_addresses_that_occur_in_several_partitions_take_nothing_fresh(log):
    log.sql(
        "CREATE TABLE {q}.parted (bucket_time timestamptz) PARTITION BY RANGE (bucket_time);"
        "CREATE TABLE {q}.old PARTITION OF {q}.parted FOR VALUES FROM (MINVALUE) TO ('2020-01-01');"
        "CREATE TABLE {q}.new PARTITION OF {q}.parted FOR VALUES FROM ('2020-01-01') TO (MAXVALUE);"
        "INSERT INTO {q}.parted VALUES ('2010-01-01'), ('2011-01-01'), (now()), (now())"
    )
    assert purge(log, "parted", "bucket_time", log.at(DAY), 100) == 2
    assert count(log, "new") == 2


def test_the_contracts_purge_covers_four_tables(log):
    for table, column in TABLES:
        sample(log, table, column, 100 * DAY, 80 * DAY)
    answer = log.one("SELECT {q}.cleanup_worker_metrics_v1(90)")
    assert answer == dict.fromkeys(COUNTS, 1)
    assert [count(log, table) for table, _ in TABLES] == [1, 1, 1, 1, 2]


@pytest.mark.parametrize(
    "days, left", [(None, 3), (2147483647, 3), (3_000_000, 3), (1, 1), (0, 1), (-5, 1)]
)
def test_L2_the_contracts_purge_with_absurd_days(log, days, left):
    """Zero and negative keep a day, as one does; NULL and more than there ever was keep all."""
    sample(log, "worker_metrics", "bucket_time", 100 * DAY, 2 * DAY, 0.5 * DAY)
    log.one("SELECT {q}.cleanup_worker_metrics_v1(%s)", days)
    assert count(log, "worker_metrics") == left


def test_days_are_24_hours_in_every_time_zone(log):
    log.sql("SET timezone = 'Europe/Rome'")
    sample(log, "worker_metrics", "bucket_time", 300 * DAY + 60, 300 * DAY - 60)
    assert log.one("SELECT {q}.cleanup_worker_metrics_v1(300)")["deletedMetrics"] == 1


# --- series -------------------------------------------------------------------------------------


def record(log, moment, kind, messages, pid=None):
    log.sql(
        "INSERT INTO {q}.retention_history (partition_id, retention_type, messages_deleted, executed_at)"
        " VALUES (%s, %s, %s, %s)",
        pid,
        kind,
        messages,
        moment,
    )


def series(log, **filters):
    return log.one("SELECT {q}.get_retention_timeseries_v1(%s)", json.dumps(filters))["series"]


def point(bucket, kind, messages, steps):
    return {"bucket": bucket, "type": kind, "messages": messages, "steps": steps}


def test_series_has_a_point_per_minute_and_type(log):
    record(log, "2026-01-02 03:04:05+00", "retention", 10)
    record(log, "2026-01-02 03:04:59+00", "retention", 2147483647)
    record(log, "2026-01-02 03:04:59+00", "completed_retention", 5)
    record(log, "2026-01-02 03:05:00+00", "retention", 7)
    log.sql("SET timezone = 'Asia/Kathmandu'")
    log.sql("SET datestyle = 'German'")
    assert series(log, **{"from": "2026-01-02T03:00:00", "to": "2026-01-02T04:00:00Z"}) == [
        point("2026-01-02T03:04:00Z", "completed_retention", 5, 1),
        point("2026-01-02T03:04:00Z", "retention", 2147483657, 2),
        point("2026-01-02T03:05:00Z", "retention", 7, 1),
    ]
    assert series(log, **{"from": "2026-01-02T03:05:00Z"}) == [
        point("2026-01-02T03:05:00Z", "retention", 7, 1)
    ]


def test_series_leaves_partition_events_out(log):
    for kind in ("__partition_deleted__", "____", "__x__", "retention", "__x", "_", "ab__", None):
        record(log, log.clock, kind, 1)
    assert sorted(p["type"] or "" for p in series(log)) == ["", "_", "__x", "ab__", "retention"]


def test_series_of_a_queue_and_of_a_tenant(log):
    tenants = [str(uuid.UUID(int=1)), str(uuid.UUID(int=2))]
    pids = [log.partition(queue=log.queue(name="same", tenant_id=t)) for t in tenants]
    for messages, pid in enumerate([*pids, str(uuid.UUID(int=9)), None], 1):
        record(log, log.clock, "retention", messages, pid)

    def total(**filters):
        return sum(p["messages"] for p in series(log, **filters))

    assert total() == 10
    assert total(queue="same") == 3
    assert total(_tenant=tenants[1]) == 2
    assert total(queue="same", _tenant=tenants[0]) == 1
    assert total(queue="other") == 0
    assert total(queue=None, _tenant=None) == 10


def test_series_without_filters(log):
    assert log.one("SELECT {q}.get_retention_timeseries_v1(NULL)") == {"series": []}
    assert log.one("SELECT {q}.get_retention_timeseries_v1('{}')") == {"series": []}
    with pytest.raises(psycopg2.Error):
        series(log, **{"from": "yesterday-ish"})


# --- queues ---------------------------------------------------------------------------------------


def test_delete_queue_takes_everything_of_its_own_and_nothing_else(log):
    tenants = [str(uuid.UUID(int=1)), str(uuid.UUID(int=2))]
    queues = [log.queue(name="same", tenant_id=tenant) for tenant in tenants]
    pids = [log.partition(queue=queue) for queue in queues]
    for pid in pids:
        log.segments(pid, [DAY] * 3)
        log.consumer(pid)
        log.dead_letter(pid)
        log.trace(pid)
        log.state(pid)
    answer = log.one("SELECT {q}.delete_queue_v1('same')")
    assert answer == {"deleted": True, "queue": "same", "existed": True}
    for table, left in [
        ("queues", 1),
        ("log_partitions", 1),
        ("log_segments", 3),
        ("log_txns", 3),
        ("log_consumers", 1),
        ("log_dlq", 1),
        ("message_traces", 2),
    ]:
        assert count(log, table) == left, table
    assert log.one("SELECT count(*) FROM {s}.state") == 2
    assert log.orphans() == 0
    again = log.one("SELECT {q}.delete_queue_v1('same')")
    assert again == {"deleted": True, "queue": "same", "existed": False}
    assert log.one("SELECT {q}.delete_queue_v1('same', NULL)")["existed"] is False
    assert log.one("SELECT {q}.delete_queue_v1('same', %s)", tenants[1])["existed"] is True


def test_delete_queue_without_partitions(log):
    log.queue(name="bare")
    assert log.one("SELECT {q}.delete_queue_v1('bare')")["existed"] is True
    assert count(log, "queues") == 0
