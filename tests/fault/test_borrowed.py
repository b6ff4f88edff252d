"""B82: a borrowed connection comes back as found after every final outcome, or is known tainted."""

import ctypes
import ctypes.util

import pytest

from cycle import support
from fault import worlds
from pg import bulk, qret

PIPELINE_OFF, TRANSACTION_IDLE, CONNECTION_OK = 0, 0, 0

# What a host may have set, none of it a default.
SETTINGS = {
    "statement_timeout": "123s",
    "lock_timeout": "45s",
    "idle_in_transaction_session_timeout": "77s",
    "search_path": "nowhere, public",
    "client_min_messages": "debug1",
    "jit": "on",
    "synchronous_commit": "remote_write",
    "default_transaction_isolation": "serializable",
    "default_transaction_deferrable": "on",
    "TimeZone": "America/Sao_Paulo",
    "DateStyle": "German, DMY",
    "IntervalStyle": "sql_standard",
    "bytea_output": "escape",
    "extra_float_digits": "-3",
    "client_encoding": "LATIN1",
    "application_name": "the host's own",
    "qretention.late_lock_ms": "31337",
}


def libpq():
    pq = ctypes.CDLL("libpq.so.5")
    pq.PQconnectdb.restype = ctypes.c_void_p
    pq.PQexec.restype = ctypes.c_void_p
    for name in "finish status isnonblocking pipelineStatus transactionStatus isBusy".split():
        getattr(pq, "PQ" + name).argtypes = [ctypes.c_void_p]
    pq.PQconnectdb.argtypes = [ctypes.c_char_p]
    pq.PQsetnonblocking.argtypes = [ctypes.c_void_p, ctypes.c_int]
    pq.PQexec.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
    pq.PQclear.argtypes = [ctypes.c_void_p]
    return pq


PQ = libpq()


@pytest.fixture
def borrowed(db):
    """A host's connection with settings of its own and a prepared statement."""
    connection = db.connect()
    with connection.cursor() as cursor:
        for name, value in SETTINGS.items():
            cursor.execute("SELECT set_config(%s, %s, false)", (name, value))
        cursor.execute("DO $$ BEGIN END $$")  # its own settings come with PL/pgSQL
        cursor.execute("PREPARE the_hosts_own AS SELECT 1")
        cursor.execute("SELECT pg_advisory_lock(4711)")
    return connection


def state(connection):
    """All that a session can be found to have."""
    pgconn = connection.pgconn_ptr
    found = [
        PQ.PQstatus(pgconn),
        PQ.PQisnonblocking(pgconn),
        PQ.PQpipelineStatus(pgconn),
        PQ.PQtransactionStatus(pgconn),
        PQ.PQisBusy(pgconn),
    ]
    with connection.cursor() as cursor:
        for question in (
            "SELECT name, setting, source FROM pg_catalog.pg_settings"
            " WHERE name NOT LIKE 'transaction%' ORDER BY name",
            "SELECT current_setting('qretention.late_lock_ms')",
            "SELECT name FROM pg_catalog.pg_prepared_statements",
            "SELECT locktype, classid, objid FROM pg_catalog.pg_locks WHERE pid = pg_backend_pid()"
            " AND locktype NOT IN ('virtualxid', 'relation')",
            "SELECT name FROM pg_catalog.pg_cursors WHERE name <> ''",
        ):
            cursor.execute(question)
            found += cursor.fetchall()
    return found


def changed(before, after):
    """What one has and the other has not."""
    return [item for item in before + after if item not in before or item not in after]


def done(db, ids, context):
    assert context.try_cycle()[0] == qret.DONE


def partial(db, ids, context):
    support.fail_deletes_of(db, ids[0])
    assert context.try_cycle()[0] == qret.PARTIAL


def busy(db, ids, context):
    other = db.connect()
    with other.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(737001)")
    assert context.try_cycle()[0] == qret.BUSY


def stopped(db, ids, context):
    context.on_log = lambda line: context.stop()
    support.fail_deletes_of(db, ids[0])
    assert context.try_cycle()[0] == qret.STOPPED
    context.resume()


def budget(db, ids, context):
    context.set(cycle_budget_ms=1, batch_size=1)
    support.slow_deletes(db, 0.01)
    assert context.try_cycle()[0] == qret.BUDGET


def schema_error(db, ids, context):
    context.set(log_schema="elsewhere")
    assert context.try_cycle()[0] == qret.ERR_SCHEMA


def sql_error_in_a_step(db, ids, context):
    support.fail_deletes_of(db, ids[0], "RAISE EXCEPTION 'x' USING ERRCODE = '42883'")
    assert context.try_cycle()[0] == qret.ERR_SCHEMA


def resource_error(db, ids, context):
    support.fail_deletes_of(db, ids[0], "RAISE EXCEPTION 'x' USING ERRCODE = '53100'")
    assert context.try_cycle()[0] == qret.ERR_SQL


def statement_timeout(db, ids, context):
    context.set(statement_timeout_ms=200)
    support.fail_deletes_of(db, ids[0], "PERFORM pg_sleep(5)")
    assert context.try_cycle()[0] == qret.PARTIAL


def lock_timeout(db, ids, context):
    context.set(lock_timeout_ms=100, late_lock_ms=50)
    other = db.connect(autocommit=False)
    with other.cursor() as cursor:
        cursor.execute("SELECT FROM queen.log_partitions WHERE id = %s FOR UPDATE", (ids[0],))
    assert context.try_cycle()[0] == qret.PARTIAL


def gate_by_hand(db, ids, context):
    assert context.gate_take()
    context.cycle()
    context.gate_release()


def steps_by_hand(db, ids, context):
    for item in context.worklist_structs()[1]:
        context.drain(qret.PHASE_RETENTION, item)
    context.step(qret.PHASE_METRICS_PURGE)


def work_list(db, ids, context):
    assert len(context.worklist()) == 3


def ping(db, ids, context):
    assert context.schema_version("log") == 1


def install(db, ids, context):
    context.install("log")


OUTCOMES = [
    done,
    partial,
    busy,
    stopped,
    budget,
    schema_error,
    sql_error_in_a_step,
    resource_error,
    statement_timeout,
    lock_timeout,
    gate_by_hand,
    steps_by_hand,
    work_list,
    ping,
    install,
]


@pytest.mark.parametrize("outcome", OUTCOMES, ids=lambda outcome: outcome.__name__)
def test_borrowed_connection_is_as_found(db, borrowed, outcome):
    _, ids = bulk.backlog(db, 3, 4)
    before = state(borrowed)
    with qret.Context() as context:
        context.attach(borrowed)
        outcome(db, ids, context)
        assert not changed(before, state(borrowed))  # already between two calls
        assert context.detach() is False
        assert state(borrowed) == before


@pytest.mark.parametrize("setting", ["default_transaction_read_only", "transaction_read_only"])
def test_borrowed_on_a_standby_is_as_found(db, borrowed, setting):
    if setting.startswith("default"):
        with borrowed.cursor() as cursor:
            cursor.execute(f"SET {setting} = on")
    else:
        db.cluster.admin(f'ALTER DATABASE "{db.name}" SET default_transaction_read_only = on')
        with borrowed.cursor() as cursor:
            cursor.execute("SET default_transaction_read_only = on")
    before = state(borrowed)
    with qret.Context() as context:
        context.attach(borrowed)
        assert context.try_cycle()[0] == qret.STANDBY
        assert state(borrowed) == before
        assert context.detach() is False


@pytest.mark.parametrize("nonblocking", [0, 1])
def test_borrowed_nonblocking_flag_is_kept(db, nonblocking):
    """A connection of plain libpq, as C hosts have them."""
    bulk.backlog(db, 1, 3)
    pgconn = PQ.PQconnectdb(db.dsn.encode())
    try:
        PQ.PQsetnonblocking(pgconn, nonblocking)
        with qret.Context() as context:
            context.check("attach", ctypes.c_void_p(pgconn))
            assert context.cycle()["segments_deleted"] == 3
            assert PQ.PQisnonblocking(pgconn) == nonblocking
            assert context.detach() is False
        assert PQ.PQpipelineStatus(pgconn) == PIPELINE_OFF
        assert PQ.PQtransactionStatus(pgconn) == TRANSACTION_IDLE
        PQ.PQclear(PQ.PQexec(pgconn, b"SELECT 1"))
    finally:
        PQ.PQfinish(pgconn)


def test_borrowed_detached_in_mid_cycle_is_tainted(db, borrowed):
    bulk.backlog(db, 3, 4)
    with qret.Context(batch_size=1) as context:
        context.attach(borrowed)
        context.begin()
        while not context.report()["steps"]:
            if context.process() == qret.WAIT:
                context.wait()
        assert context.detach() is True
        assert context.call("cycle_process") == qret.ERR_STATE
    borrowed.close()
    assert support.eventually(lambda: not [k for _, k in support.advisory_locks(db) if k == 737001])


def test_borrowed_detached_with_the_gate_is_tainted(db, borrowed):
    with qret.Context() as context:
        context.attach(borrowed)
        assert context.gate_take()
        assert context.detach() is True


def test_borrowed_in_use_by_the_host_keeps_its_gate(db):
    """A release in the middle of the host's transaction is out of order, and comes to its end later."""
    borrowed = db.connect(autocommit=False)
    with qret.Context() as context:
        context.attach(borrowed)
        assert context.gate_take()
        with borrowed.cursor() as cursor:
            cursor.execute("SELECT 1")
        assert context.call("gate_release") == qret.ERR_STATE
        assert len(support.advisory_locks(db)) == 1 and not context.events("release_failed")
        borrowed.rollback()
        context.gate_release()
        assert not support.advisory_locks(db)
        assert context.detach() is False


@pytest.mark.parametrize("encoding", ["LATIN1", "SJIS", "SQL_ASCII"])
def test_borrowed_with_another_encoding_knows_our_names(empty_db, encoding):
    """They are UTF-8 in the options, whatever the host's connection speaks."""
    schemas = {"log_schema": 'Schéma', "streams_schema": 'St"réams'}
    with qret.Context(empty_db.dsn, **schemas) as context:
        context.install("broker")
        context.install("log")
    borrowed = empty_db.connect()
    with borrowed.cursor() as cursor:
        cursor.execute("SET client_encoding = " + encoding)
        with qret.Context(**schemas) as context:
            context.attach(borrowed)
            context.cycle()
            assert context.detach() is False
        cursor.execute("SHOW client_encoding")
        assert cursor.fetchone() == (encoding,)


@pytest.mark.parametrize("action", ["cut", "blackhole"])
def test_borrowed_lost_is_tainted_and_never_reset(db, cluster, proxy, action):
    """It fails the same way until it is detached; another one works."""
    import psycopg2  # the one place that wants a connection through the proxy

    bulk.backlog(db, 2, 4)
    limits = {"statement_timeout_ms": 300, "batch_size": 1}
    borrowed = psycopg2.connect(proxy.dsn(db.name))
    borrowed.autocommit = True
    with qret.Context(**limits) as context:
        context.attach(borrowed)
        context.begin()
        while not context.report()["steps"]:
            if context.process() == qret.WAIT:
                context.wait()
        proxy.strike(action)
        code = support.finish(context)
        assert code == (qret.ERR_CONNECTION if action == "cut" else qret.ERR_TIMEOUT)
        assert not context.retryable
        again, _ = context.try_cycle()
        assert again == qret.ERR_CONNECTION and "detach" in context.hint
        assert context.detach() is True
        borrowed.close()
        proxy.forget()
        with qret.Context(db.dsn) as healer:
            worlds.heal(healer)
        assert bulk.count(db) == 0
        other = db.connect()
        context.attach(other)
        assert context.try_cycle()[0] == qret.DONE
        assert context.detach() is False


def test_borrowed_closed_by_the_server_between_cycles(db, borrowed):
    with qret.Context() as context:
        context.attach(borrowed)
        context.cycle()
        db.sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
            " AND datname = current_database()"
        )
        code, _ = context.try_cycle()
        assert code == qret.ERR_CONNECTION and not context.retryable
        assert context.detach() is True


def test_borrowed_with_a_timeout_of_100_ms_for_everything(db):
    """The host's own limits hold for what it runs, ours for what we run."""
    bulk.backlog(db, 2, 3)
    support.slow_deletes(db, 0.2)
    borrowed = db.connect(options="-c statement_timeout=100 -c lock_timeout=100")
    before = state_of_timeouts(borrowed)
    with qret.Context(batch_size=1) as context:
        context.attach(borrowed)
        assert context.cycle()["segments_deleted"] == 6
        assert context.detach() is False
    assert state_of_timeouts(borrowed) == before


def state_of_timeouts(connection):
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT current_setting('statement_timeout'), current_setting('lock_timeout')"
        )
        return cursor.fetchall()
