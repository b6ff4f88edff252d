"""Floors come to a system that is alive, to odd names, hostile paths and narrow roles (L18,
L12).
"""

import contextlib
import threading

import psycopg2
import pytest

from pg import bulk, install
from pg.broker import Broker
from sql.floors_client import Client, Cycle
from sql.floors_oracle import Oracle, rows_left
from sql.log_support import DAY, Log, source

ROLE = "floors_retainer"


def missing(db, schema="queen"):
    return db.one(
        f"SELECT count(*) FROM {schema}.log_partitions AS p WHERE NOT EXISTS"
        f" (SELECT FROM {schema}.retention_floors AS f WHERE f.partition_id = p.id)"
    )


def trigger_enabled(db):
    return db.one("SELECT tgenabled FROM pg_trigger WHERE tgname = 'retention_floors_inserted'")


def test_L18_install_on_a_live_system_files_old_and_new_partitions(empty_db):
    install.install(empty_db.dsn, "broker")
    queue = bulk.queue(empty_db)
    bulk.partitions(empty_db, queue, 3000)
    stop, errors, made = threading.Event(), [], [0, 0]

    def provision(number):
        broker = Broker(empty_db)
        try:
            while not stop.is_set():
                pid = broker.partition(queue, f"live-{number}-{made[number]}")
                broker.push(pid)
                made[number] += 1
        except Exception as error:
            errors.append(error)
        broker.close()

    loaders = [threading.Thread(target=provision, args=(number,)) for number in range(2)]
    for loader in loaders:
        loader.start()
    try:
        install.install(empty_db.dsn, "log")
    finally:
        stop.set()
        for loader in loaders:
            loader.join()
    assert errors == []
    assert min(made) > 0
    assert missing(empty_db) == 0
    assert trigger_enabled(empty_db) == "A"
    assert empty_db.one("SELECT count(*) FROM pg_index WHERE NOT indisvalid") == 0


def test_L18_the_trigger_is_created_behind_a_lock_timeout(empty_db):
    """A transaction that holds on to the table delays the install, and nobody queues behind it for
    long.
    """
    install.install(empty_db.dsn, "broker")
    install.install(empty_db.dsn, "log")
    empty_db.sql("DROP TRIGGER retention_floors_inserted ON queen.log_partitions")
    holder = empty_db.connect(autocommit=False)
    with holder.cursor() as cursor:
        cursor.execute("INSERT INTO queen.queues (name) VALUES ('q') RETURNING id")
        cursor.execute(
            "INSERT INTO queen.log_partitions (queue_id) VALUES (%s)", (cursor.fetchone()[0],)
        )
    session = empty_db.connect()
    with session.cursor() as cursor:
        cursor.execute("SET lock_timeout = '50ms'")
        with pytest.raises(psycopg2.errors.LockNotAvailable):
            cursor.execute(source("floors/retention_floors_trigger.sql"))
        holder.commit()
        cursor.execute(source("floors/retention_floors_trigger.sql"))
        cursor.execute(source("floors/backfill.sql"))
        assert cursor.fetchone()[0] == 1
        cursor.execute(source("floors/backfill.sql"))
        assert cursor.fetchone()[0] == 0
    assert missing(empty_db) == 0


def test_L18_installing_again_keeps_what_is_known_and_rights_a_disabled_trigger(db):
    log, client = Log(db), Client(db)
    pid = log.partition()
    client.refresh([pid])
    known = log.sql("SELECT f::text FROM {q}.retention_floors AS f")
    log.sql("ALTER TABLE {q}.log_partitions ENABLE TRIGGER retention_floors_inserted")
    install.install(db.dsn, "log")
    assert log.sql("SELECT f::text FROM {q}.retention_floors AS f") == known
    assert trigger_enabled(db) == "A"


def test_L18_floors_lost_with_a_restored_database_come_back_by_installing(db):
    log = Log(db)
    queue = log.queue(retention_enabled=True, retention_seconds=DAY)
    for _ in range(3):
        log.segments(log.partition(queue=queue), [5 * DAY])
    log.sql("DROP TRIGGER retention_floors_inserted ON {q}.log_partitions")
    log.sql("DROP TABLE {q}.retention_floors")
    install.install(db.dsn, "log")
    assert Cycle(Client(db)).run() == 6


@pytest.mark.parametrize("schema", ['We"ird.Schéma', "x" * 59 + "é"])
def test_B80_any_schema_name_will_do(empty_db, schema):
    for part in ("broker", "log"):
        install.install(empty_db.dsn, part, log_schema=schema, streams_schema="streams")
    log = Log(empty_db, schema=schema, streams="streams")
    pid = log.partition(queue=log.queue(retention_enabled=True, retention_seconds=DAY))
    log.segments(pid, [5 * DAY, 0])
    client = Client(empty_db, schema=schema)
    assert Cycle(client).run() == 2
    assert client.walk_round() == []
    assert log.one("SELECT {q}.retention_floors_reset_v1()") == 1


HOSTILE = """
    CREATE SCHEMA attacker;
    CREATE FUNCTION attacker.now() RETURNS timestamptz LANGUAGE sql
        AS $$ SELECT 'infinity'::timestamptz $$;
    CREATE FUNCTION attacker.make_interval(secs float8) RETURNS interval LANGUAGE sql
        AS $$ SELECT interval '-100 years' $$;
    CREATE FUNCTION attacker.yes(timestamptz, timestamptz) RETURNS bool LANGUAGE sql
        AS $$ SELECT true $$;
    CREATE FUNCTION attacker.yes(uuid, uuid) RETURNS bool LANGUAGE sql AS $$ SELECT true $$;
    CREATE FUNCTION attacker.yes(int4, int4) RETURNS bool LANGUAGE sql AS $$ SELECT true $$;
    CREATE OPERATOR attacker.< (FUNCTION = attacker.yes,
        LEFTARG = timestamptz, RIGHTARG = timestamptz);
    CREATE OPERATOR attacker.> (FUNCTION = attacker.yes,
        LEFTARG = timestamptz, RIGHTARG = timestamptz);
    CREATE OPERATOR attacker.= (FUNCTION = attacker.yes, LEFTARG = uuid, RIGHTARG = uuid);
    CREATE OPERATOR attacker.> (FUNCTION = attacker.yes, LEFTARG = int4, RIGHTARG = int4);
    CREATE TYPE attacker.timestamptz AS ENUM ('never');
    CREATE TYPE attacker.uuid AS ENUM ('none');
"""


@pytest.mark.parametrize("path", ["attacker, pg_catalog, queen", "attacker, queen, pg_catalog"])
def test_B77_a_hostile_path_and_temporary_tables_are_not_used(db, path):
    log = Log(db)
    log.sql(HOSTILE)
    queue = log.queue(
        retention_enabled=True, retention_seconds=9 * DAY, completed_retention_seconds=DAY
    )
    pid = log.partition(queue=queue)
    log.segments(pid, [50 * DAY, 5 * DAY, 0])
    log.consumer(pid, 3)
    clock = log.one("SELECT now()")
    expected = Oracle(db, clock).left()
    client = Client(db)
    for name in ("log_partitions", "log_segments", "queues", "retention_floors", "log_consumers"):
        client.sql(f"CREATE TEMPORARY TABLE {name} (nothing int)")
    client.sql(f"SET search_path = {path}")
    for name in ("worklist_scan", "worklist_by_id", "worklist_due"):
        text = client.text(name).replace("::text", "::pg_catalog.text")
        client.sql(f"PREPARE {name} AS {text}")
    rows = client.sql("EXECUTE worklist_scan (NULL, NULL, 10)")
    assert len(rows) == 1 and rows[0][1] == pid and rows[0][3] < clock and rows[0][6] is None
    assert client.sql("EXECUTE worklist_by_id (%s, %s)", str(clock), "{" + pid + "}")[0][1] == pid
    assert len(client.sql(f"EXECUTE worklist_due (NULL, 9{', NULL' * 7})")) == 2
    for version in (1, 2):
        for step, cutoffs in (("retention", 2), ("txns", 1), ("max_wait", 1)):
            name = f"step_{step}_v{version}"
            client.prepare(name)
            ages = [str(log.at(9 * DAY)), None][:cutoffs]
            row = client.sql(f"EXECUTE {name} (%s{', %s' * cutoffs}, 10, true)", pid, *ages)[0]
            assert row[5] is False and (row[0] == 1) == (version == 1 and step != "max_wait"), name
    client.sql("SET search_path = pg_catalog")
    client.sql("DEALLOCATE ALL")
    client.prepared.clear()
    Cycle(client).run()
    assert rows_left(db) == expected


@pytest.fixture
def granted(empty_db):
    with contextlib.suppress(psycopg2.errors.DuplicateObject):
        empty_db.cluster.admin(f"CREATE ROLE {ROLE} LOGIN")
    for part in ("broker", "log"):
        install.install(empty_db.dsn, part, grant_role=ROLE)
    return empty_db


@pytest.mark.parametrize("version", [1, 2])
def test_B79_the_documented_grants_are_enough_for_a_cycle_by_floors(granted, version):
    log = Log(granted)
    queue = log.queue(
        retention_enabled=True, retention_seconds=9 * DAY, completed_retention_seconds=DAY,
        max_wait_time_seconds=40 * DAY,
    )
    for number in range(4):
        pid = log.partition(queue=queue)
        log.segments(pid, [50 * DAY, 5 * DAY, 0][number:])
        log.consumer(pid, 3)
    log.sql("DELETE FROM {q}.retention_floors WHERE partition_id = %s", pid)
    expected = Oracle(granted, log.one("SELECT now()")).left()
    client = Client(granted, version=version, user=ROLE)
    assert client.walk_round()
    Cycle(client).run()
    assert rows_left(granted) == expected
    assert client.sql("SELECT queen.retention_floors_reset_v1()") == [(4,)]
    assert client.sql("SELECT current_user") == [(ROLE,)]


def test_B78_nobody_else_may_call_what_floors_install(granted):
    rows = granted.sql(
        "SELECT p.oid::regprocedure::text FROM pg_proc AS p WHERE p.pronamespace ="
        " 'queen'::regnamespace"
        " AND (p.proname ~ '^retention_(floors|cutoffs|late)' OR p.proname ~ '_v2$')"
        " AND has_function_privilege('public', p.oid, 'EXECUTE')"
    )
    assert rows == []
    table = "queen.retention_floors"
    assert not granted.one("SELECT has_table_privilege('public', %s, 'SELECT')", table)
