"""Install of the broker and log parts: register, names, repeats, races, hostile sessions (L12)."""

import threading
import time

import psycopg2
import pytest

from pg import install
from sql.log_support import DAY, Log, shown, source

STEP = "log_retention_step_v1(uuid, timestamptz, timestamptz, int, text)"
FOREIGN_STEP = """
    CREATE FUNCTION queen.log_retention_step_v1(
        p_pid uuid, p_all_cutoff timestamptz, p_completed_cutoff timestamptz, p_max_rows int,
        p_history_type text DEFAULT NULL)
    RETURNS jsonb LANGUAGE sql AS $$ SELECT '{"deleted":0,"new_log_start":-42,"done":true}'::jsonb $$
"""


@pytest.fixture
def without_floors(monkeypatch):
    """Leaves out the lists that the log part includes, which have tests of their own."""
    entries = install.entries

    def own(part, listing="install.list"):
        return [e for e in entries(part, listing) if not {"floors", "v2"} & set(e[1].split("/"))]

    monkeypatch.setattr(install, "entries", own)


def register(db, signature, text):
    return db.one("SELECT queen.retention_install_v1(%s, %s)", signature, text)


def state(db):
    """What an install could have written: rows of the catalogs and of its own tables, with their xmin."""
    return (
        db.sql("SELECT oid, xmin::text FROM pg_proc WHERE pronamespace = 'queen'::regnamespace ORDER BY 1")
        + db.sql("SELECT oid, xmin::text FROM pg_class WHERE relnamespace >= 16384 ORDER BY 1")
        + db.sql("SELECT signature, xmin::text FROM queen.retention_register ORDER BY 1")
        + db.sql("SELECT part, xmin::text FROM queen.retention_schema ORDER BY 1")
    )


def test_install_twice_writes_nothing(db):
    db.cluster.admin("DROP ROLE IF EXISTS twice")
    db.cluster.admin("CREATE ROLE twice")
    install.install(db.dsn, "log", grant_role="twice")
    before = state(db)
    for part in ("broker", "log"):
        install.install(db.dsn, part, grant_role="twice")
    assert state(db) == before


def test_install_records_parts_and_versions(db):
    assert db.sql("SELECT part, version FROM queen.retention_schema ORDER BY 1") == [
        ("broker", 1),
        ("log", 1),
    ]
    db.sql("UPDATE queen.retention_schema SET version = 7")
    install.install(db.dsn, "log")
    assert db.one("SELECT version FROM queen.retention_schema WHERE part = 'log'") == 7


def test_install_of_the_broker_alone_has_no_functions(empty_db):
    install.install(empty_db.dsn, "broker")
    assert empty_db.one("SELECT count(*) FROM pg_proc WHERE pronamespace = 'queen'::regnamespace") == 0
    assert empty_db.sql("SELECT part FROM queen.retention_schema") == [("broker",)]


def test_install_of_the_log_alone_names_what_is_missing(empty_db):
    empty_db.sql("CREATE SCHEMA queen")
    with pytest.raises(psycopg2.errors.UndefinedTable) as caught:
        install.install(empty_db.dsn, "log")
    assert "queen.queues" in str(caught.value)
    assert "broker" in caught.value.diag.message_hint


def test_broker_tables_have_the_storage_that_a_hot_log_needs(db):
    options = dict(db.sql("SELECT relname::text, reloptions FROM pg_class WHERE reloptions IS NOT NULL"))
    assert set(options["log_partitions"]) == {
        "fillfactor=70",
        "autovacuum_vacuum_scale_factor=0",
        "autovacuum_vacuum_threshold=500",
        "autovacuum_vacuum_cost_delay=0",
        "vacuum_truncate=off",
    }
    assert set(options["log_consumers"]) == {"fillfactor=50", "vacuum_truncate=off"}
    storage = "SELECT attstorage::text FROM pg_attribute WHERE attrelid = %s::regclass AND attname = %s"
    assert db.one(storage, "queen.log_segments", "blob") == "e"
    indexes = "SELECT count(*) FROM pg_index WHERE indrelid = 'queen.log_segments'::regclass"
    assert db.one(indexes) == 1
    defaults = db.sql(
        "INSERT INTO queen.queues (name) VALUES ('defaults') RETURNING tenant_id::text,"
        " retention_enabled, retention_seconds, completed_retention_seconds,"
        " max_wait_time_seconds, dedup_window_seconds"
    )
    assert defaults == [("00000000-0000-0000-0000-000000000001", False, 0, 0, 0, 3600)]


def test_broker_tables_without_the_foreign_keys_that_must_not_be(db):
    keys = db.sql(
        "SELECT conrelid::regclass::text, confrelid::regclass::text FROM pg_constraint"
        " WHERE contype = 'f' AND confrelid = 'queen.log_partitions'::regclass ORDER BY 1"
    )
    broker = [key for key in keys if not key[0].startswith("queen.retention_")]
    assert broker == [
        ("queen.log_consumers", "queen.log_partitions"),
        ("queen.log_segments", "queen.log_partitions"),
    ]


def test_existing_tables_are_never_changed(empty_db):
    empty_db.sql("CREATE SCHEMA queen")
    empty_db.sql("CREATE TABLE queen.queues (id uuid PRIMARY KEY, mine text)")
    empty_db.sql("CREATE TABLE queen.system_metrics (mine text)")
    install.install(empty_db.dsn, "broker")
    columns = (
        "SELECT attname::text FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 ORDER BY attnum"
    )
    assert empty_db.sql(columns, "queen.queues") == [("id",), ("mine",)]
    assert empty_db.sql(columns, "queen.system_metrics") == [("mine",)]
    assert empty_db.one("SELECT to_regclass('queen.log_txns') IS NOT NULL")


# --- the register -----------------------------------------------------------------------------


def test_L12_a_foreign_function_is_never_replaced(empty_db):
    install.install(empty_db.dsn, "broker")
    empty_db.sql(FOREIGN_STEP)
    acl = empty_db.one("SELECT proacl::text FROM pg_proc WHERE proname = 'log_retention_step_v1'")
    install.install(empty_db.dsn, "log")
    assert register(empty_db, STEP, source("v1/log_retention_step_v1.sql")) == "foreign"
    log = Log(empty_db)
    pid = log.partition()
    assert log.retain(pid, stale=DAY)["new_log_start"] == -42
    assert log.evict(pid, DAY)["new_log_start"] == -42  # delegates to the contract, whoever keeps it
    assert empty_db.one("SELECT proacl::text FROM pg_proc WHERE proname = 'log_retention_step_v1'") == acl
    assert not empty_db.sql("SELECT 1 FROM queen.retention_register WHERE signature = %s", STEP)
    assert log.purge(pid, DAY)["done"]


def test_register_answers_for_each_case(db):
    text = source("v1/log_retention_step_v1.sql")
    assert register(db, STEP, text) == "kept"
    assert register(db, STEP, text + "-- a newer comment\n") == "replaced"
    assert register(db, STEP, text.replace("VOLATILE", "VOLATILE COST 99")) == "replaced"
    assert db.one("SELECT procost FROM pg_proc WHERE proname = 'log_retention_step_v1'") == 99
    db.sql(f"DROP FUNCTION queen.{STEP}")
    assert register(db, STEP, text) == "created"
    db.sql("UPDATE queen.retention_register SET version = 2")
    assert register(db, STEP, text + "-- of an older library\n") == "kept"


def test_register_leaves_alone_what_was_changed_since(db):
    db.sql(FOREIGN_STEP.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION"))
    install.install(db.dsn, "log")
    text = source("v1/log_retention_step_v1.sql")
    assert register(db, STEP, text) == "foreign"
    assert Log(db).retain(None)["new_log_start"] == -42


def test_register_keeps_the_grants_of_what_it_replaces(db):
    db.sql(f"GRANT EXECUTE ON FUNCTION queen.{STEP} TO PUBLIC")
    before = db.one("SELECT proacl::text FROM pg_proc WHERE proname = 'log_retention_step_v1'")
    register(db, STEP, source("v1/log_retention_step_v1.sql") + "-- newer\n")
    assert db.one("SELECT proacl::text FROM pg_proc WHERE proname = 'log_retention_step_v1'") == before


def test_register_refuses_a_statement_that_creates_something_else(db):
    with pytest.raises(psycopg2.errors.UndefinedFunction):
        register(db, "nothing_v1(int)", source("v1/log_retention_step_v1.sql"))
    assert not db.sql("SELECT 1 FROM queen.retention_register WHERE signature = 'nothing_v1(int)'")


def test_register_replaces_the_installer_itself_only_when_it_is_older(db):
    text = source("../common/retention_install_v1.sql")
    changed = text.replace("RETURN 'kept'", "RETURN 'same'")
    db.sql(changed)
    assert register(db, STEP, source("v1/log_retention_step_v1.sql")) == "same"
    db.sql("UPDATE queen.retention_register SET version = 2")
    db.sql(text)
    assert register(db, STEP, source("v1/log_retention_step_v1.sql")) == "same"


# --- streams ----------------------------------------------------------------------------------


def without_streams(db):
    install.install(db.dsn, "broker")
    db.sql("DROP SCHEMA queen_streams CASCADE")
    install.install(db.dsn, "log")
    return Log(db)


def test_L9_a_database_without_streams(empty_db):
    log = without_streams(empty_db)
    kept, gone = log.partition(), log.partition()
    log.dead_letter(kept)
    assert log.dead(gone) is True
    assert shown(log.cleanup_v2()) == {"deleted": 1, "last": None, "done": True}
    assert log.alive() == [kept]


def test_L9_streams_that_appear_are_refused_until_the_install_is_repeated(empty_db):
    log = without_streams(empty_db)
    pid = log.partition()
    install.install(empty_db.dsn, "broker")
    log.state(pid)
    for call in (log.cleanup, log.cleanup_v2):
        with pytest.raises(psycopg2.Error) as caught:
            call()
        assert caught.value.pgcode == "QR003"
    install.install(empty_db.dsn, "log")
    assert log.dead(pid) is False
    assert log.cleanup() == {"deleted": 0, "done": True}
    assert log.one(
        "SELECT indisvalid FROM pg_index"
        " WHERE indexrelid = 'queen_streams.retention_state_partition_id_idx'::regclass"
    )


# --- names and sessions ------------------------------------------------------------------------

NAMES = ['We"ird.Schéma', "UPPER lower", "a'b\\c$1", "é" * 31, "select"]
ATTACK = """
    CREATE SCHEMA attacker;
    CREATE FUNCTION attacker.now() RETURNS timestamptz LANGUAGE sql AS $$ SELECT 'infinity'::timestamptz $$;
    CREATE FUNCTION attacker.left(text, int) RETURNS text LANGUAGE sql AS $$ SELECT 'stolen' $$;
    CREATE FUNCTION attacker.jsonb_build_object(VARIADIC "any") RETURNS jsonb LANGUAGE internal
        AS 'jsonb_build_array' IMMUTABLE;
    CREATE FUNCTION attacker.older(timestamptz, timestamptz) RETURNS boolean LANGUAGE sql
        AS $$ SELECT true $$;
    CREATE FUNCTION attacker.same(text, text) RETURNS boolean LANGUAGE sql AS $$ SELECT true $$;
    CREATE OPERATOR attacker.< (LEFTARG = timestamptz, RIGHTARG = timestamptz, FUNCTION = attacker.older);
    CREATE OPERATOR attacker.>= (LEFTARG = timestamptz, RIGHTARG = timestamptz, FUNCTION = attacker.older);
    CREATE OPERATOR attacker.= (LEFTARG = text, RIGHTARG = text, FUNCTION = attacker.same);
    CREATE FUNCTION attacker.format(text, text, text) RETURNS text LANGUAGE sql AS $$ SELECT 'stolen' $$;
    CREATE FUNCTION attacker.md5(text) RETURNS text LANGUAGE sql AS $$ SELECT 'stolen' $$;
"""
ATTACK_ON_TYPES = """
    CREATE DOMAIN attacker.text AS pg_catalog.int4;
    CREATE DOMAIN attacker.uuid AS pg_catalog.int4;
    CREATE DOMAIN attacker.record AS pg_catalog.int4;
    CREATE DOMAIN attacker.regprocedure AS pg_catalog.int4;
    CREATE DOMAIN attacker.jsonb AS pg_catalog.int4;
    CREATE DOMAIN attacker.timestamptz AS pg_catalog.int4;
"""
HOSTILE = "-c search_path=attacker,pg_temp,pg_catalog -c standard_conforming_strings=off"


def lives(log):
    """A partition that is retained, purged, evicted and deleted, and one that is kept."""
    pid, kept = log.partition(), log.partition()
    for each in (pid, kept):
        log.segments(each, [50 * DAY, 50 * DAY, 40 * DAY])
        log.consumer(each, committed=9)
    assert log.retain(pid, stale=45 * DAY, completed=DAY, rows=1)["deleted"] == 1
    assert log.retain(pid, stale=45 * DAY)["deleted"] == 1
    assert log.purge(pid, 45 * DAY)["deleted"] == 2
    assert log.evict(pid, DAY) == {"deleted": 1, "new_log_start": 30, "done": True}
    assert shown(log.cleanup_v2()) == {"deleted": 1, "last": None, "done": True}
    assert log.alive() == [kept]
    assert log.bases(kept) == [0, 10, 20]
    assert sorted(kind for kind, _ in log.history(pid)) == [
        "__partition_deleted__",
        "max_wait_time_eviction",
        "retention",
        "retention",
    ]


@pytest.mark.parametrize("name", NAMES)
def test_L12_B80_any_schema_name(empty_db, name):
    settings = {"log_schema": name, "streams_schema": name[:-1] + "S"}
    empty_db.cluster.admin("DROP ROLE IF EXISTS \"ro'le\"")
    empty_db.cluster.admin("CREATE ROLE \"ro'le\"")
    for part in ("broker", "log", "log"):
        install.install(empty_db.dsn, part, grant_role="ro'le", **settings)
    lives(Log(empty_db, schema=name, streams=settings["streams_schema"]))


def test_L12_B77_a_hostile_search_path_in_the_session_that_calls(db):
    db.sql(ATTACK)
    log = Log(db)  # its clock is the true one
    log.sql("SET search_path = attacker, pg_temp, pg_catalog; SET standard_conforming_strings = off")
    for table in ("log_partitions", "log_segments", "log_consumers", "retention_history"):
        log.sql(f"CREATE TEMP TABLE {table} (LIKE {{q}}.{table})")
    assert log.one("SELECT now()::text") == "infinity"  # the attack works
    assert log.one("SELECT pg_catalog.now() < '1970-01-01'") is True
    lives(log)
    assert log.one("SELECT pg_catalog.count(*) FROM pg_temp.log_partitions") == 0


@pytest.mark.usefixtures("without_floors")
def test_L12_B77_a_hostile_search_path_in_the_session_that_installs(empty_db):
    empty_db.sql(ATTACK + ATTACK_ON_TYPES)
    dsn = empty_db.dsn + f" options='{HOSTILE}'"
    for part in ("broker", "log", "log"):
        install.install(dsn, part)
    assert empty_db.sql("SELECT part, version FROM queen.retention_schema ORDER BY 1") == [
        ("broker", 1),
        ("log", 1),
    ]
    types = empty_db.sql(
        "SELECT DISTINCT t.typnamespace::regnamespace::text FROM pg_attribute AS a"
        " JOIN pg_type AS t ON t.oid = a.atttypid JOIN pg_class AS c ON c.oid = a.attrelid"
        " WHERE c.relnamespace = 'queen'::regnamespace AND c.relkind = 'r'"
    )
    assert types == [("pg_catalog",)]
    lives(Log(empty_db))


def test_install_under_other_session_defaults(empty_db):
    options = (
        "-c default_transaction_isolation=serializable -c timezone=Asia/Kathmandu -c datestyle=German"
        " -c standard_conforming_strings=off -c extra_float_digits=-15 -c bytea_output=escape"
        " -c check_function_bodies=off -c default_transaction_deferrable=on"
    )
    for part in ("broker", "log"):
        install.install(empty_db.dsn + f" options='{options}'", part)
    lives(Log(empty_db, options="-c timezone=Asia/Kathmandu -c datestyle=German"))


# --- beside others -----------------------------------------------------------------------------


@pytest.mark.usefixtures("without_floors")
def test_install_of_the_log_waits_for_no_writer_of_the_brokers_tables(empty_db):
    """A transaction has written to each of them and stays open. (The floors' trigger does wait.)"""
    install.install(empty_db.dsn, "broker")
    log = Log(empty_db)
    pid = log.partition()
    log.connection.autocommit = False
    log.sql("SELECT 1 FROM {q}.log_partitions WHERE id = %s FOR UPDATE", pid)
    log.sql("UPDATE {q}.log_partitions SET last_offset = 5 WHERE id = %s", pid)
    log.segments(pid, [0])
    log.consumer(pid)
    log.dead_letter(pid)
    install.install(empty_db.dsn + " options='-c lock_timeout=300'", "log")
    log.connection.commit()
    assert log.bases(pid) == [0]


RETRIED = ("55P03", "40P01", "23505", "42P07", "42710", "42P06", "XX000")


def install_with_retries(dsn, part, errors):
    for _ in range(100):
        try:
            install.install(dsn, part)
            return
        except psycopg2.Error as error:
            if error.pgcode not in RETRIED:
                errors.append(error)
                return
            time.sleep(0.02)
    errors.append("never went through")


@pytest.mark.usefixtures("without_floors")
def test_installers_side_by_side(empty_db):
    errors = []
    threads = [
        threading.Thread(
            target=lambda: [install_with_retries(empty_db.dsn, part, errors) for part in ("broker", "log")]
        )
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not errors
    # Two concurrent index builds can meet in a deadlock, whose loser leaves an invalid index.
    invalid = "SELECT indexrelid::regclass::text FROM pg_index WHERE NOT indisvalid"
    for (name,) in empty_db.sql(invalid):
        empty_db.sql(f"DROP INDEX {name}")
    install.install(empty_db.dsn, "log")
    assert empty_db.sql(invalid) == []
    lives(Log(empty_db))


def test_B13_install_under_load_leaves_the_loaders_alone(empty_db):
    install.install(empty_db.dsn, "broker")
    log = Log(empty_db)
    pids = [log.partition() for _ in range(4)]
    stop = threading.Event()
    failures, rounds = [], []

    def load(pid):
        loader = Log(empty_db)
        loader.connection.autocommit = False
        count = 0
        try:
            while not stop.is_set():
                loader.sql("SELECT 1 FROM {q}.log_partitions WHERE id = %s FOR UPDATE", pid)
                loader.sql("UPDATE {q}.log_partitions SET last_offset = last_offset + 1 WHERE id = %s", pid)
                loader.connection.commit()
                count += 1
        except psycopg2.Error as error:
            failures.append(error)
        rounds.append(count)

    loaders = [threading.Thread(target=load, args=(pid,)) for pid in pids for _ in range(2)]
    for loader in loaders:
        loader.start()
    try:
        for _ in range(3):
            install_with_retries(empty_db.dsn + " options='-c lock_timeout=500'", "log", failures)
    finally:
        stop.set()
        for loader in loaders:
            loader.join(30)
    assert failures == []
    assert min(rounds) > 0
