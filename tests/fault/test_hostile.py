"""Hostile surroundings: settings nobody expects, encodings, clocks that differ."""

import os
import shutil
import threading
import time

import pytest

from cycle import support
from fault import hosts, worlds
from pg import broker as brokers
from pg import bulk, qret

ROLE = {
    "statement_timeout": "'100ms'",
    "lock_timeout": "'50ms'",
    "idle_in_transaction_session_timeout": "'1s'",
    "idle_session_timeout": "'1s'",
    "default_transaction_isolation": "'serializable'",
    "default_transaction_deferrable": "on",
    '"TimeZone"': "'America/Sao_Paulo'",
    '"DateStyle"': "'German, DMY'",
    '"IntervalStyle"': "'sql_standard'",
    "search_path": "attacker, pg_catalog, queen",
    "bytea_output": "'escape'",
    "extra_float_digits": "'-15'",
    "client_min_messages": "'debug1'",
    "standard_conforming_strings": "off",
    "jit_above_cost": "'0'",
    "row_security": "off",
    "lc_messages": "'C'",
    "enable_indexscan": "off",
    "transform_null_equals": "on",
    "array_nulls": "off",
    "backslash_quote": "off",
    "session_replication_role": "'origin'",
}

# Functions and operators that an unqualified name would find first.
ATTACKER = """
CREATE SCHEMA attacker;
CREATE FUNCTION attacker.now() RETURNS timestamptz
    LANGUAGE sql AS $$ SELECT '2999-01-01'::timestamptz $$;
CREATE FUNCTION attacker.clock_timestamp() RETURNS timestamptz
    LANGUAGE sql AS $$ SELECT attacker.now() $$;
CREATE FUNCTION attacker.count(bigint) RETURNS bigint LANGUAGE sql AS $$ SELECT 0::bigint $$;
CREATE FUNCTION attacker.always(timestamptz, timestamptz) RETURNS bool
    LANGUAGE sql AS $$ SELECT true $$;
CREATE OPERATOR attacker.<
    (LEFTARG = timestamptz, RIGHTARG = timestamptz, FUNCTION = attacker.always);
CREATE OPERATOR attacker.>=
    (LEFTARG = timestamptz, RIGHTARG = timestamptz, FUNCTION = attacker.always);
CREATE TABLE attacker.log_partitions (id uuid);
CREATE TABLE attacker.queues (id uuid);
"""


@pytest.fixture
def hostile(db):
    """A conninfo of a superuser whose settings are all odd."""
    db.sql(ATTACKER)
    db.cluster.admin("DROP ROLE IF EXISTS odd")
    db.cluster.admin("CREATE ROLE odd LOGIN SUPERUSER")
    for name, value in ROLE.items():
        db.cluster.admin(f"ALTER ROLE odd SET {name} = {value}")
    yield db.dsn.replace("user=postgres", "user=odd")
    db.close()


WAYS = {
    "owned": {},
    "owned behind a pooler": {"pooler": "transaction", "gate": "none"},
    "lease": {"gate": "lease", "interval_ms": 1000},
    "lanes": {"parallelism": 3},
    "scan": {"work_list": "scan"},
    "v1": {"step_version": "1"},
}


@pytest.mark.parametrize("way", WAYS)
def test_hostile_role(db, hostile, way):
    """Fresh rows stay, old ones go, limits are ours, nobody else's functions run."""
    _, ids = worlds.fill(db, partitions=3, segments=6)
    bulk.segments(db, ids, 2, 5)
    support.slow_deletes(db, 0.15)  # longer than the role's own limit
    with qret.Context(hostile, batch_size=50, **WAYS[way]) as context:
        report = context.cycle()
    assert (report["segments_deleted"], report["partitions_deleted"]) == (18, 1)
    assert bulk.count(db) == 6 and worlds.audited(db) == 18


def test_hostile_role_borrowed(db, hostile):
    worlds.fill(db, partitions=3, segments=6)
    support.slow_deletes(db, 0.15)
    borrowed = db.connect(user="odd")
    with qret.Context() as context:
        context.attach(borrowed)
        assert context.cycle()["segments_deleted"] == 18
        assert context.detach() is False


def test_nobody_sits_idle_in_a_transaction(db, hostile):
    """B09: a drain of several seconds under a limit of one for idle transactions and sessions."""
    bulk.backlog(db, 6, 20)
    support.slow_deletes(db, 0.02)
    watcher, seen = db.connect(), []
    for options in ({}, {"pooler": "transaction", "gate": "lease"}):
        with qret.Context(hostile, batch_size=2, **options) as context:
            context.begin()
            while (code := context.process()) in (qret.MORE, qret.WAIT):
                if code == qret.WAIT:
                    context.wait()
                with watcher.cursor() as cursor:
                    cursor.execute(
                        "SELECT state FROM pg_stat_activity WHERE usename = 'odd'"
                        " AND state LIKE 'idle in transaction%'"
                        " AND clock_timestamp() - state_change > '0.2 s'"
                    )
                    seen += cursor.fetchall()
            assert code == qret.DONE
            bulk.segments(
                db, [r[0] for r in db.sql("SELECT id::text FROM queen.log_partitions")], 20, 3600
            )
    assert seen == []


def test_paused_between_batches_for_longer_than_the_idle_limit(db):
    """A row rate makes the library wait between transactions; its session must not die of that."""
    bulk.backlog(db, 3, 2)
    with qret.Context(db.dsn, max_rows_per_second=2, idle_limit_ms=1000, batch_size=2) as context:
        report = context.cycle()
        assert report["segments_deleted"] == 6 and report["elapsed_us"] > 1_500_000


@pytest.mark.parametrize("isolation", ["serializable", "repeatable read"])
def test_isolation_default_of_the_database(cluster, isolation):
    """B73: pushers beside it, no error surfaces, nothing is lost."""
    db = cluster.create_database(("broker", "log"))
    cluster.admin(f"ALTER DATABASE \"{db.name}\" SET default_transaction_isolation = '{isolation}'")
    db.close()
    _, ids = bulk.backlog(
        db, 4, 30, dedup_window_seconds=0, retention_enabled=True, retention_seconds=60
    )
    pusher = brokers.Broker(db)
    pusher.connection.set_session(isolation_level="READ COMMITTED", autocommit=True)
    pushed = 0
    with qret.Context(db.dsn, batch_size=3) as context:
        context.begin()
        while (code := context.process()) in (qret.MORE, qret.WAIT):
            pusher.push(ids[pushed % 4])
            pushed += 1
            if code == qret.WAIT:
                context.wait()
        assert code == qret.DONE, context.message
        assert context.report()["segments_deleted"] == 120
    assert bulk.count(db) == pushed
    db.drop()


NAMES = {
    "SQL_ASCII": b"caf\xe9 \xff\xfe",
    "LATIN1": "caf\u00e9 \u00bf".encode("latin-1"),
    "EUC_JP": "\u65e5\u672c\u8a9e".encode("euc_jp"),
    "UTF8": "\u65e5\u672c\u8a9e \U0001f600 \u0085".encode("utf-8"),
}


@pytest.mark.parametrize("encoding", NAMES)
def test_encodings(cluster, encoding):
    """B90: works by id; what is logged is escaped, valid UTF-8, one line."""
    name = f"enc_{encoding.lower()}"
    cluster.drop_database(name)
    db = cluster.create_database((), name=name, options=f"ENCODING '{encoding}'")
    db.name = name
    with qret.Context(db.dsn) as installer:
        installer.install("broker")
        installer.install("log")
    queue_id, ids = bulk.backlog(db, 2, 3)
    octal = "".join(f"\\{byte:03o}" for byte in NAMES[encoding])
    db.sql(
        f"UPDATE queen.queues SET name = convert_from('{octal}\\012\\033'::bytea, '{encoding}')"
        " WHERE id = %s",
        queue_id,
    )
    db.sql(
        f"CREATE FUNCTION public.complain() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        f" IF OLD.partition_id = '{ids[0]}' THEN"
        f" RAISE EXCEPTION '%', (SELECT name FROM queen.queues); END IF;"
        " RAISE WARNING '%', (SELECT name FROM queen.queues); RETURN OLD; END $$"
    )
    db.sql(
        "CREATE TRIGGER complain BEFORE DELETE ON queen.log_segments"
        " FOR EACH ROW EXECUTE FUNCTION public.complain()"
    )
    with qret.Context(db.dsn) as context:
        code, report = context.try_cycle()
        assert code == qret.PARTIAL and report["segments_deleted"] == 3
        assert context.sqlstate == "P0001"  # the trigger's, not one about bytes that cannot be sent
        assert context.message  # valid UTF-8, or decoding it would have raised
        assert context.events("item_failed")
        assert len(context.events("notice")) == 3
        for line in context.logs:
            assert line.text.isprintable() and "\n" not in line.text
    with qret.Context() as context:
        context.attach(borrowed := db.connect())
        assert context.try_cycle()[0] == qret.PARTIAL
        assert context.sqlstate == "P0001" and context.message
        assert context.detach() is False
    assert borrowed.encoding == encoding.replace("_", "")
    db.drop()


def faketime_library():
    folders = ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib")
    paths = [os.path.join(folder, "faketime", "libfaketime.so.1") for folder in folders]
    return next((path for path in paths if os.path.exists(path)), None)


@pytest.mark.parametrize("offset", ["-2h", "+2h", "+10d"])
def test_hosts_clock_decides_nothing(db, offset):
    """B58: a host whose wall clock is wrong deletes the same rows."""
    library = faketime_library()
    assert library or shutil.which("faketime"), "libfaketime is not installed"
    _, ids = bulk.backlog(db, 2, 3)
    bulk.segments(db, ids, 4, 5)
    environment = {
        "LD_PRELOAD": library,
        "FAKETIME": offset,
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "DONT_FAKE_MONOTONIC": "1",
    }
    with hosts.Host(db.dsn, seconds=20, env=environment, interval_ms=60_000) as host:
        line = host.wait_for(lambda each: "end" in each)
    assert line["code"] == "DONE"
    assert line["report"]["segments_deleted"] == 6
    assert abs(line["report"]["clock_us"] / 1e6 - time.time()) < 120  # the server's clock
    assert bulk.count(db) == 8


def test_index_build_outlasts_every_limit(empty_db):
    """It waits for whoever is older than itself, for longer than a statement of a step may take."""
    reader = empty_db.connect(autocommit=False)
    with reader.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        cursor.execute("SELECT count(*) FROM pg_class")
    release = threading.Timer(2.5, reader.rollback)
    release.start()
    limits = {"statement_timeout_ms": 500, "idle_limit_ms": 1000, "lock_timeout_ms": 5000}
    with qret.Context(empty_db.dsn, **limits) as context:
        started = time.monotonic()
        context.install("event")
        assert time.monotonic() - started > 2
    release.join()
    assert empty_db.one("SELECT count(*) FROM pg_index WHERE NOT indisvalid") == 0
