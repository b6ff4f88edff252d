"""Misuse and misfortune: each has its code, a message that says what to do, and no effect."""

import ctypes
import time

import pytest

from cycle import support
from pg import bulk, qret
from pg.broker import to_us

LATER = 1 << 30  # no pointer is read where the context is NULL


@pytest.mark.parametrize(
    "call",
    """ctx_new set_option get_option load_env set_log set_metrics connect attach detach
    schema_install schema_version worklist_build step gate_take gate_release run_cycle cycle_begin
    cycle_process cycle_get_report poll_fds wait set_busy option_get_info metric_get_info
    worklist_get""".split(),
)
def test_null_everywhere(lib, call):
    function = getattr(lib, "qret_" + call)
    nothing = {ctypes.c_int32: 0, ctypes.c_uint32: 0, ctypes.c_uint64: 0, ctypes.c_size_t: 0}
    arguments = [
        kind() if hasattr(kind, "argtypes") or kind in (qret.types.LOG_FN,) else nothing.get(kind)
        for kind in function.argtypes
    ]
    arguments = [
        kind() if issubclass(kind, ctypes._CFuncPtr) else value  # pylint: disable=protected-access
        for kind, value in zip(function.argtypes, arguments)
    ]
    assert function(*arguments) == qret.ERR_ARGUMENT


def test_null_is_fine_for_these(lib):
    lib.qret_ctx_free(None)
    lib.qret_stop(None)
    lib.qret_resume(None)
    lib.qret_worklist_free(None)
    assert lib.qret_worklist_count(None) == lib.qret_worklist_clock_us(None) == 0
    assert lib.qret_error_message(None) == lib.qret_error_hint(None) == b""
    assert lib.qret_error_sqlstate(None) == b""
    assert lib.qret_error_is_retryable(None) == 0
    assert lib.qret_next_cycle_us(None) == qret.NO_DEADLINE


def test_struct_sizes(db):
    with qret.Context(db.dsn) as context:
        for size in (0, 4, 143, 4097, 1 << 31):
            report = qret.CycleReport(size=size)
            assert context.call("run_cycle", ctypes.byref(report)) == qret.ERR_ARGUMENT
            assert report.clock_us == 0
        for size in (0, 39, 4097):
            result = qret.StepResult(size=size)
            assert context.call("step", 5, None, ctypes.byref(result)) == qret.ERR_ARGUMENT
        item = qret.work_item("00000000-0000-0000-0000-000000000001")
        item.size = 71
        result = qret.StepResult()
        pointers = ctypes.byref(item), ctypes.byref(result)
        assert context.call("step", qret.PHASE_RETENTION, *pointers) == qret.ERR_ARGUMENT


def test_struct_of_the_first_version_is_written_no_further(db):
    buffer = (ctypes.c_uint8 * 216)(*[0xAA] * 216)
    report = ctypes.cast(buffer, ctypes.POINTER(qret.CycleReport))
    report.contents.size = 144
    with qret.Context(db.dsn) as context:
        assert context.call("run_cycle", report) == qret.DONE
    assert report.contents.clock_us > 0
    assert bytes(buffer)[144:] == b"\xaa" * 72
    assert report.contents.size == 144


def test_struct_with_an_unknown_tail(db):
    """Out: zeroed. In: refused unless it is zero."""

    class Longer(ctypes.Structure):
        _fields_ = [("known", qret.CycleReport), ("tail", ctypes.c_int64 * 2)]

    longer = Longer()
    longer.known.size = ctypes.sizeof(Longer)
    longer.tail[:] = [7, 7]
    pointer = ctypes.cast(ctypes.byref(longer), ctypes.POINTER(qret.CycleReport))
    with qret.Context(db.dsn) as context:
        assert context.call("run_cycle", pointer) == qret.DONE
    assert list(longer.tail) == [0, 0]

    class LongerItem(ctypes.Structure):
        _fields_ = [("known", qret.WorkItem), ("tail", ctypes.c_int64)]

    for tail, code in ((0, qret.DONE), (1, qret.ERR_ARGUMENT)):
        item = LongerItem(known=qret.work_item("00000000-0000-0000-0000-000000000001"), tail=tail)
        item.known.size = ctypes.sizeof(LongerItem)
        pointer = ctypes.cast(ctypes.byref(item), ctypes.POINTER(qret.WorkItem))
        with qret.Context(db.dsn) as context:
            result = qret.StepResult()
            assert context.call("step", qret.PHASE_RETENTION, pointer, ctypes.byref(result)) == code


def test_calls_out_of_order(db):
    report = qret.CycleReport()
    with qret.Context() as context:
        for call in ("cycle_begin", "cycle_process", "gate_take", "gate_release"):
            assert context.call(call) == qret.ERR_STATE, call
            assert context.message
        assert context.call("run_cycle", None) == qret.ERR_STATE
        assert context.call("cycle_get_report", ctypes.byref(report)) == qret.ERR_STATE
        assert context.call("detach", None) == qret.ERR_STATE
        assert context.call("schema_install", b"log") == qret.ERR_STATE
        context.connect(db.dsn)
        assert context.call("cycle_process") == qret.ERR_STATE
        assert context.call("gate_release") == qret.ERR_STATE


def test_calls_in_mid_cycle(db):
    other = db.connect()
    with qret.Context(db.dsn) as context:
        context.begin()
        assert context.call("cycle_begin") == qret.ERR_STATE
        assert context.call("run_cycle", None) == qret.ERR_STATE
        assert context.call("set_option", b"batch_size", b"5") == qret.ERR_STATE
        assert context.call("connect", db.dsn.encode()) == qret.ERR_STATE
        assert context.call("attach", ctypes.c_void_p(other.pgconn_ptr)) == qret.ERR_STATE
        assert context.call("gate_take") == qret.ERR_STATE
        assert context.call("gate_release") == qret.ERR_STATE
        assert context.call("schema_install", b"log") == qret.ERR_STATE
        assert support.finish(context) == qret.DONE
        context.set(batch_size=5)


def test_attach_needs_an_idle_connection(db):
    busy = db.connect(autocommit=False)
    with busy.cursor() as cursor:
        cursor.execute("SELECT 1")
    with qret.Context() as context:
        code = context.call("attach", ctypes.c_void_p(busy.pgconn_ptr))
        assert code in (qret.ERR_STATE, qret.ERR_ARGUMENT)
        busy.rollback()
        context.attach(busy)
        assert context.call("connect", db.dsn.encode()) == qret.ERR_STATE
        assert context.detach() is False


@pytest.mark.parametrize(
    "name, value",
    [
        ("no_such_option", "1"),
        ("batch_size", "0"),
        ("batch_size", "1000001"),
        ("batch_size", "many"),
        ("batch_size", ""),
        ("batch_size", "10 "),
        ("batch_size", "99999999999999999999999"),
        ("interval_ms", "-1"),
        ("interval_ms", "9007199254740993"),
        ("parallelism", "17"),
        ("partition_cleanup", "maybe"),
        ("gate", "leader"),
        ("log_schema", ""),
        ("log_schema", "x" * 64),
        ("event_retention_days", "-1"),
    ],
)
def test_option_refused(name, value):
    """The message names option, value and range, and the old value stays."""
    with qret.Context() as context:
        known = name in {row["name"] for row in qret.options()}
        before = context.get(name) if known else None
        with pytest.raises(qret.Failure) as caught:
            context.set(**{name: value})
        assert caught.value.code == qret.ERR_OPTION
        assert name in caught.value.message
        if known:
            assert context.get(name) == before


def test_option_floors_clamp_with_a_warning():
    with qret.Context() as context:
        for name in ("partition_cleanup_days", "metrics_retention_days"):
            for value in ("0", "-5"):
                context.set(**{name: value})
                assert context.get(name) == "1"
        lines = context.events("option_clamped")
        assert len(lines) == 4
        assert all(line.level == qret.LOG_WARN for line in lines)


def test_conninfo_refused_without_repeating_it():
    with qret.Context() as context:
        code = context.call("connect", b"password=sesame nonsense")
        assert code == qret.ERR_OPTION
        assert context.message
        assert "sesame" not in context.message + context.hint
        assert not [line for line in context.logs if "sesame" in line.text]


def test_unreachable_server(empty_db, tmp_path):
    with qret.Context(f"host={tmp_path} user=nobody password=sesame") as context:
        started = time.monotonic()
        code, report = context.try_cycle()
        assert code == qret.ERR_CONNECTION == report["outcome"]
        assert context.retryable
        assert str(tmp_path) in context.message
        assert "sesame" not in context.message + context.hint
        assert time.monotonic() - started < 10
        assert report["clock_us"] == 0
    with qret.Context(empty_db.dsn.replace(empty_db.name, "nowhere")) as context:
        assert context.try_cycle()[0] == qret.ERR_CONNECTION
        assert context.sqlstate in ("3D000", "")
        assert not context.retryable


def test_unknown_role_is_not_retryable(empty_db):
    with qret.Context(empty_db.dsn + " user=stranger") as context:
        assert context.try_cycle()[0] == qret.ERR_CONNECTION
        assert not context.retryable
        assert "stranger" in context.message


def test_missing_schema(empty_db):
    with qret.Context(empty_db.dsn) as context:
        for call in (
            lambda: context.cycle(),
            lambda: context.worklist(),
            lambda: context.step(qret.PHASE_RETENTION, qret.work_item("0" * 32)),
        ):
            with pytest.raises(qret.Failure) as caught:
                call()
            assert caught.value.code == qret.ERR_SCHEMA
            assert "install" in caught.value.hint
            assert not caught.value.retryable
        assert context.schema_version("log") == 0
        with pytest.raises(qret.Failure) as caught:
            context.install("log")
        assert caught.value.code == qret.ERR_SCHEMA
        assert "broker" in caught.value.message + caught.value.hint


def test_unknown_part(db):
    with qret.Context(db.dsn) as context:
        assert context.call("schema_install", b"everything") == qret.ERR_ARGUMENT
        version = ctypes.c_int32(77)
        code = context.call("schema_version", b"everything", ctypes.byref(version))
        assert (code, version.value) == (qret.ERR_ARGUMENT, 77)


def test_schema_of_a_newer_version_refuses_to_be_installed_over(db):
    db.sql("UPDATE queen.retention_schema SET version = 999 WHERE part = 'log'")
    with qret.Context(db.dsn) as context:
        assert context.schema_version("log") == 999
        code = context.call("schema_install", b"log")
        assert code in (qret.DONE, qret.ERR_SCHEMA)
        assert context.schema_version("log") == 999


def test_missing_grant(db):
    """The message names what the role lacks."""
    bulk.backlog(db, 1, 1)
    db.sql("DROP ROLE IF EXISTS stranger_to_queen")
    db.sql("CREATE ROLE stranger_to_queen LOGIN")
    try:
        with qret.Context(db.dsn + " user=stranger_to_queen") as context:
            code, report = context.try_cycle()
            assert code == qret.ERR_PRIVILEGE
            assert context.sqlstate == "42501"
            assert "queen" in context.message
            assert not context.retryable
            assert report["segments_deleted"] == 0
        db.sql("GRANT USAGE ON SCHEMA queen TO stranger_to_queen")
        with qret.Context(db.dsn + " user=stranger_to_queen") as context:
            assert context.try_cycle()[0] == qret.ERR_PRIVILEGE
            assert "permission denied" in context.message
    finally:
        db.sql("DROP OWNED BY stranger_to_queen")
        db.sql("DROP ROLE stranger_to_queen")
    assert bulk.count(db) == 1


def test_cutoff_in_the_future(db):
    queue_id, ids = bulk.backlog(db, 1, 3)
    soon = to_us(db.one("SELECT now() + interval '1 minute'"))
    with qret.Context(db.dsn) as context:
        for phase, cut in (
            (qret.PHASE_RETENTION, "all"),
            (qret.PHASE_RETENTION, "completed"),
            (qret.PHASE_TXNS_PURGE, "txns"),
            (qret.PHASE_MAX_WAIT, "max_wait"),
        ):
            for value in (soon, qret.NO_DEADLINE):
                item = qret.work_item(ids[0], queue_id, **{cut: value})
                with pytest.raises(qret.Failure) as caught:
                    context.step(phase, item)
                assert caught.value.code == qret.ERR_ARGUMENT, (phase, value)
    assert bulk.count(db) == bulk.count(db, "log_txns") == 3


def test_step_without_item_or_phase(db):
    item = qret.work_item("00000000-0000-0000-0000-000000000001")
    with qret.Context(db.dsn) as context:
        for phase, given in ((0, item), (7, item), (-1, None), (1, None), (2, None), (3, None)):
            pointer = None if given is None else ctypes.byref(given)
            result = qret.StepResult()
            code = context.call("step", phase, pointer, ctypes.byref(result))
            assert code == qret.ERR_ARGUMENT, phase


def test_all_cutoffs_off_delete_nothing(db):
    queue_id, ids = bulk.backlog(db, 1, 3, age_seconds=400 * support.DAY)
    with qret.Context(db.dsn) as context:
        item = qret.work_item(ids[0], queue_id)
        for phase in (qret.PHASE_RETENTION, qret.PHASE_TXNS_PURGE, qret.PHASE_MAX_WAIT):
            result = context.step(phase, item)
            assert (result["rows_deleted"], result["done"]) == (0, 1)


def test_reentrant_calls_are_refused(db):
    bulk.backlog(db, 1, 1)
    codes = []
    with qret.Context(db.dsn) as context:

        def call_back(_line):
            codes.append(context.call("cycle_begin"))
            codes.append(context.call("set_option", b"batch_size", b"1"))
            codes.append(context.call("run_cycle", None))

        context.on_log = call_back
        context.cycle()
    assert codes and set(codes) == {qret.ERR_REENTRANT}


def test_odd_schema_names(cluster):
    """B80: quoted everywhere."""
    db = cluster.create_database()
    names = {"log_schema": 'We"ird.Schéma', "streams_schema": "Str'eams"}
    with qret.Context(db.dsn, **names) as context:
        context.install("broker")
        context.install("log")
        db.sql('ALTER SCHEMA "We""ird.Schéma" RENAME TO queen')
        bulk.backlog(db, 2, 2)
        db.sql('ALTER SCHEMA queen RENAME TO "We""ird.Schéma"')
        assert context.cycle()["segments_deleted"] == 4
    db.drop()
