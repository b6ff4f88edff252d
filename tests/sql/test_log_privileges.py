"""Who may do what: nothing for PUBLIC, and just enough for the role that runs retention (L12)."""

import contextlib

import psycopg2
import pytest

from pg import install
from sql.log_support import DAY, Log, client_statement, source

ROLE = "retainer"
METRICS = [
    ("worker_metrics", "bucket_time"),
    ("queue_lag_metrics", "bucket_time"),
    ("queue_parked_replica", "bucket_time"),
    ("retention_history", "executed_at"),
    ("system_metrics", "timestamp"),
]
# Relation: (rights on the whole, rights on columns); what the doc comment of grants.sql says.
RANGES = {"partition_id", "base_offset", "end_offset", "created_at"}
DOCUMENTED = {
    "queues": ({"SELECT"}, {}),
    "log_partitions": ({"SELECT", "DELETE"}, {"UPDATE": {"log_start", "txns_start"}}),
    "log_segments": ({"DELETE"}, {"SELECT": RANGES}),
    "log_txns": ({"DELETE"}, {"SELECT": RANGES}),
    "log_consumers": ({"SELECT"}, {"UPDATE": {"created_at"}}),
    "log_dlq": (set(), {"SELECT": {"partition_id"}}),
    "retention_history": ({"SELECT", "INSERT", "DELETE"}, {}),
    "worker_metrics": ({"SELECT", "DELETE"}, {}),
    "queue_lag_metrics": ({"SELECT", "DELETE"}, {}),
    "queue_parked_replica": ({"SELECT", "DELETE"}, {}),
    "system_metrics": ({"SELECT", "DELETE"}, {}),
    "retention_schema": ({"SELECT"}, {}),
    "state": (set(), {"SELECT": {"partition_id"}}),
}


@pytest.fixture
def granted(empty_db):
    """A database whose log part was installed with the role named."""
    with contextlib.suppress(psycopg2.errors.DuplicateObject):
        empty_db.cluster.admin(f"CREATE ROLE {ROLE} LOGIN")
    install.install(empty_db.dsn, "broker")
    only_log(empty_db)
    return empty_db


def only_log(db):
    """Grants by the file alone: other files of the part document and grant their own."""
    install.install(db.dsn, "log")
    db.sql(source("grants/grants.sql", grant_role=ROLE))


def exercise(log):
    """Everything that the library asks of the log part, as whoever `log` is connected."""
    log.sql("SELECT part, version FROM {q}.retention_schema")
    log.sql("SELECT p.id, q.* FROM {q}.log_partitions AS p JOIN {q}.queues AS q ON q.id = p.queue_id")
    pids = log.alive()
    for pid in pids:
        log.retain(pid, stale=45 * DAY, completed=DAY)
        log.purge(pid, DAY)
        log.evict(pid, 0)
        log.dead(pid)
        log.one("SELECT {q}.log_retention_boundary_v1(%s, 0, now())", pid)
    assert log.cleanup(rows=1)["deleted"] == 1
    assert log.cleanup_v2()["deleted"] == len(pids) - 1
    for table, column in METRICS:
        statement = client_statement(
            "metrics_purge.sql", table=f'"queen"."{table}"', column=f'"{column}"'
        )
        log.execute(statement, log.clock, 10)
    log.one("SELECT {q}.cleanup_worker_metrics_v1(1)")
    log.one("""SELECT {q}.get_retention_timeseries_v1('{"queue": "x"}')""")


def populate(log):
    for _ in range(2):
        pid = log.partition()
        log.segments(pid, [50 * DAY, 50 * DAY, 40 * DAY])
        log.consumer(pid, committed=19)
    for table, column in METRICS:
        log.sql(f'INSERT INTO {{q}}.{table} ("{column}") VALUES (%s)', log.at(100 * DAY))


def rights(db):
    """What the role holds by name, in the shape of DOCUMENTED."""
    found = {}
    whole = db.sql(
        "SELECT c.relname::text, a.privilege_type FROM pg_class AS c, aclexplode(c.relacl) AS a"
        " WHERE a.grantee = %s::regrole",
        ROLE,
    )
    for relation, right in whole:
        found.setdefault(relation, (set(), {}))[0].add(right)
    columns = db.sql(
        "SELECT c.relname::text, a.privilege_type, t.attname::text FROM pg_class AS c"
        " JOIN pg_attribute AS t ON t.attrelid = c.oid, aclexplode(t.attacl) AS a"
        " WHERE a.grantee = %s::regrole",
        ROLE,
    )
    for relation, right, column in columns:
        found.setdefault(relation, (set(), {}))[1].setdefault(right, set()).add(column)
    return found


def functions(db):
    return {
        row[0]
        for row in db.sql(
            "SELECT p.proname::text FROM pg_proc AS p, aclexplode(p.proacl) AS a"
            " WHERE a.grantee = %s::regrole AND p.pronamespace = 'queen'::regnamespace",
            ROLE,
        )
    }


def test_L12_B78_public_may_execute_nothing_of_ours(db):
    open_to_all = db.sql(
        "SELECT p.oid::regprocedure::text FROM pg_proc AS p"
        " WHERE p.pronamespace = 'queen'::regnamespace"
        " AND (p.proacl IS NULL OR EXISTS"
        " (SELECT FROM aclexplode(p.proacl) AS a WHERE a.grantee = 0))"
    )
    assert open_to_all == []


def test_L12_B78_the_contract_runs_as_its_caller_with_a_pinned_path(db):
    ours = db.sql(
        "SELECT p.proname::text, p.prosecdef, p.proconfig FROM pg_proc AS p"
        " WHERE p.pronamespace = 'queen'::regnamespace AND p.prokind = 'f'"
        " AND (p.proname LIKE '%\\_v1' OR p.proname = 'log_partition_cleanup_step_v2')"
    )
    assert len(ours) >= 13
    for name, definer, settings in ours:
        assert "search_path=pg_catalog, pg_temp" in settings, name
        assert not definer or not name.startswith(("log_", "cleanup_", "delete_", "get_")), name


def test_L12_the_grants_are_those_that_are_documented(granted):
    assert rights(granted) == DOCUMENTED
    for schema in ("queen", "queen_streams"):
        assert granted.one("SELECT has_schema_privilege(%s, %s, 'USAGE')", ROLE, schema)
        assert not granted.one("SELECT has_schema_privilege(%s, %s, 'CREATE')", ROLE, schema)
    assert functions(granted) == {
        "log_retention_boundary_v1",
        "log_retention_step_v1",
        "log_txns_purge_step_v1",
        "log_evict_max_wait_step_v1",
        "log_partition_dead_v1",
        "log_partition_cleanup_step_v1",
        "log_partition_cleanup_step_v2",
        "retention_streams_check_v1",
        "retention_streams_state_v1",
        "retention_orphans_v1",
        "retention_cleanup_lock_v1",
        "retention_cleanup_delete_v1",
        "retention_cleanup_remove_v1",
        "cleanup_worker_metrics_v1",
        "get_retention_timeseries_v1",
    }


def test_L12_B79_the_grants_are_enough(granted):
    populate(Log(granted))
    exercise(Log(granted, user=ROLE))
    left = Log(granted)
    assert left.alive() == []
    assert left.one("SELECT count(*) FROM {q}.log_txns") == 0


def every_grant():
    for relation, (whole, columns) in DOCUMENTED.items():
        schema = "queen_streams" if relation == "state" else "queen"
        for right in sorted(whole):
            yield f'{right} ON "{schema}"."{relation}"'
        for right, names in sorted(columns.items()):
            for name in sorted(names):
                yield f'{right} ("{name}") ON "{schema}"."{relation}"'


def test_L12_B79_none_of_the_grants_is_too_many(granted):
    """Each one taken away, something fails and says what it misses."""
    log = Log(granted)
    populate(log)
    log.connection.autocommit = False
    for grant in every_grant():
        log.sql(f"REVOKE {grant} FROM {ROLE}")
        log.sql(f"SET LOCAL ROLE {ROLE}")
        with pytest.raises(psycopg2.errors.InsufficientPrivilege) as caught:
            exercise(log)
        assert grant.split('"')[-2] in str(caught.value), grant
        log.connection.rollback()


@pytest.mark.parametrize(
    "forbidden",
    [
        "SELECT blob FROM queen.log_segments",
        "SELECT hashes FROM queen.log_txns",
        "SELECT payload FROM queen.log_dlq",
        "SELECT value FROM queen_streams.state",
        "DELETE FROM queen.log_dlq",
        "DELETE FROM queen.queues",
        "DELETE FROM queen.log_consumers",
        "UPDATE queen.log_consumers SET committed = 0",
        "UPDATE queen.log_partitions SET last_offset = 0",
        "UPDATE queen.retention_history SET messages_deleted = 0",
        "INSERT INTO queen.log_segments VALUES (gen_random_uuid(), 0, 0, now())",
        "SELECT queen.delete_queue_v1('x')",
        "SELECT queen.retention_install_v1('x()', 'SELECT 1')",
    ],
)
def test_L12_what_the_role_may_not_do(granted, forbidden):
    with pytest.raises(psycopg2.errors.InsufficientPrivilege):
        Log(granted, user=ROLE).sql(forbidden)


def test_L12_grants_without_streams_and_with_a_serial_history(empty_db):
    with contextlib.suppress(psycopg2.errors.DuplicateObject):
        empty_db.cluster.admin(f"CREATE ROLE {ROLE} LOGIN")
    empty_db.sql("CREATE SCHEMA queen")
    empty_db.sql(
        "CREATE TABLE queen.retention_history (id bigserial PRIMARY KEY, partition_id uuid,"
        " messages_deleted int DEFAULT 0, retention_type varchar(50), executed_at timestamptz DEFAULT now())"
    )
    install.install(empty_db.dsn, "broker")
    empty_db.sql("DROP SCHEMA queen_streams CASCADE")
    only_log(empty_db)
    populate(Log(empty_db))
    exercise(Log(empty_db, user=ROLE))


def test_L12_a_role_that_does_not_exist_is_named(db):
    with pytest.raises(psycopg2.errors.UndefinedObject) as caught:
        db.sql(source("grants/grants.sql", grant_role="no such role"))
    assert "no such role" in str(caught.value)


def test_L12_no_role_no_grants(db):
    before = db.sql("SELECT oid, relacl::text FROM pg_class WHERE relacl IS NOT NULL ORDER BY 1")
    db.sql(source("grants/grants.sql"))
    assert db.sql("SELECT oid, relacl::text FROM pg_class WHERE relacl IS NOT NULL ORDER BY 1") == before
