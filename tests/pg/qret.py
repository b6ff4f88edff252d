"""libqretention in Python: a Context that raises, and the plain calls beside it.

What a test wants to see as a return code has a call_ method or goes through context.lib.
"""

import collections
import ctypes
import filecmp
import functools
import glob
import os
import subprocess
import sys
import tempfile
import uuid

from . import qret_types as types
from .qret_types import *  # noqa: F401,F403 pylint: disable=wildcard-import,unused-wildcard-import
from .qret_types import CycleReport, Metric, OptionInfo, StepResult, WorkItem

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
EPOCH_FIELDS = "all_cutoff_us completed_cutoff_us txns_cutoff_us max_wait_cutoff_us".split()

LogLine = collections.namedtuple("LogLine", "level event text suppressed")
Sample = collections.namedtuple("Sample", "kind name unit phase value")
Item = collections.namedtuple("Item", ["partition_id", "queue_id", *EPOCH_FIELDS])


class Failure(Exception):
    """A call returned an error, or an outcome that the caller did not allow."""

    def __init__(self, call, code, message="", sqlstate="", hint="", retryable=0):
        self.call, self.code = call, code
        self.message, self.sqlstate, self.hint = message, sqlstate, hint
        self.retryable = bool(retryable)
        super().__init__(f"{call}: {types.name_of(code)} {sqlstate} {message} ({hint})")


def is_library(file):
    return os.path.isfile(file) and not file.endswith(".symbols")


def path():
    """The shared library: QRETENTION_LIBRARY, else the one in the build folder."""
    chosen = os.environ.get("QRETENTION_LIBRARY")
    if chosen:
        return chosen
    for pattern in ("build/lib*/libqretention.so*", "build/libqretention.so*"):
        found = sorted(p for p in glob.glob(os.path.join(ROOT, pattern)) if is_library(p))
        if found:
            return found[-1]
    raise FileNotFoundError("libqretention.so is not built: run meson, or set QRETENTION_LIBRARY")


@functools.lru_cache(maxsize=None)
def refuse_stale():
    """The library carries the SQL that it installs; beside newer files, tests would try old ones."""
    sql = os.path.join(ROOT, "sql")
    built = os.path.join(os.path.dirname(os.path.dirname(path())), "sql", "sql_embedded.c")
    if not os.path.exists(built):
        return  # an installed library: nothing to compare with
    with tempfile.TemporaryDirectory() as folder:
        fresh, header = (os.path.join(folder, "sql_embedded" + end) for end in (".c", ".h"))
        command = [sys.executable, os.path.join(sql, "embed.py"), sql, fresh, header]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        if not filecmp.cmp(fresh, built, shallow=False):
            raise RuntimeError(f"{path()} is older than sql/: run meson compile -C build")


@functools.lru_cache(maxsize=None)
def load(library=None):
    """The library with its prototypes declared."""
    lib = ctypes.CDLL(library or path())
    for name, (result, arguments) in types.PROTOTYPES.items():
        try:
            function = getattr(lib, name)
        except AttributeError:
            continue  # a call is declared when it is built
        function.restype = result
        function.argtypes = arguments
    return lib


def version():
    return load().qret_version().decode()


def _rows(call, kind):
    rows = []
    while True:
        row = kind()
        if call(len(rows), ctypes.byref(row)) != types.DONE:
            return rows
        values = row.as_dict().items()
        rows.append({k: v.decode() if isinstance(v, bytes) else v for k, v in values})


def options():
    """The option table, a dict a row."""
    return _rows(load().qret_option_get_info, OptionInfo)


def metrics():
    """Every metric series, a dict a row."""
    return _rows(load().qret_metric_get_info, Metric)


def item_of(struct):
    """A work item as a named tuple: ids as uuid text, a cutoff that is off as None."""
    cutoffs = [getattr(struct, name) for name in EPOCH_FIELDS]
    return Item(
        str(uuid.UUID(bytes=bytes(struct.partition_id))),
        str(uuid.UUID(bytes=bytes(struct.queue_id))),
        *(None if value == types.CUTOFF_OFF else value for value in cutoffs),
    )


def work_item(partition_id, queue_id=None, **cutoffs):
    """A struct for qret_step. Cutoffs not given are off; names with or without _cutoff_us."""
    struct = WorkItem()
    struct.partition_id[:] = uuid.UUID(str(partition_id)).bytes
    if queue_id:
        struct.queue_id[:] = uuid.UUID(str(queue_id)).bytes
    for name in EPOCH_FIELDS:
        short = name[: -len("_cutoff_us")]
        value = cutoffs.pop(name, cutoffs.pop(short, None))
        setattr(struct, name, types.CUTOFF_OFF if value is None else value)
    if cutoffs:
        raise TypeError(f"no such cutoff: {sorted(cutoffs)}")
    return struct


class Context:
    """One qret_ctx. Use it as a context manager, or call close()."""

    def __init__(self, conninfo=None, level=types.LOG_DEBUG, **options):
        self.lib = load()
        self.logs = []
        self.samples = []
        self.on_log = None  # called with every LogLine, inside the library's callback
        self.on_metric = None
        handle = ctypes.c_void_p()
        code = self.lib.qret_ctx_new(ctypes.byref(handle))
        if code != types.DONE:
            raise Failure("qret_ctx_new", code)
        self.handle = handle
        # ctypes frees a callback that nobody holds.
        self._log_fn = types.LOG_FN(self._log)
        self._metric_fn = types.METRIC_FN(self._metric)
        no_free = types.FREE_FN()
        self.lib.qret_set_log(self.handle, level, self._log_fn, None, no_free)
        if hasattr(self.lib, "qret_set_metrics"):
            self.lib.qret_set_metrics(self.handle, self._metric_fn, None, no_free)
        try:
            self.set(**options)
            if conninfo is not None:
                self.connect(conninfo)
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def close(self):
        if self.handle is not None:
            self.lib.qret_ctx_free(self.handle)
            self.handle = None

    # --- callbacks --------------------------------------------------------------------------

    def _log(self, _user_data, record):
        row = record.contents
        line = LogLine(row.level, row.event.decode(), row.text.decode(), row.suppressed)
        self.logs.append(line)
        if self.on_log:
            self.on_log(line)

    def _metric(self, _user_data, metric):
        row = metric.contents
        sample = Sample(
            row.kind, row.name.decode(), row.unit.decode(), row.phase.decode(), row.value
        )
        self.samples.append(sample)
        if self.on_metric:
            self.on_metric(sample)

    def events(self, event=None):
        """The collected log lines, all or those of one event id."""
        return [line for line in self.logs if event in (None, line.event)]

    # --- errors -----------------------------------------------------------------------------

    @property
    def message(self):
        return self.lib.qret_error_message(self.handle).decode()

    @property
    def sqlstate(self):
        return self.lib.qret_error_sqlstate(self.handle).decode()

    @property
    def hint(self):
        return self.lib.qret_error_hint(self.handle).decode()

    @property
    def retryable(self):
        return bool(self.lib.qret_error_is_retryable(self.handle))

    def failure(self, call, code):
        return Failure(call, code, self.message, self.sqlstate, self.hint, self.retryable)

    def call(self, name, *args):
        """Any call on the context; returns its code."""
        return getattr(self.lib, "qret_" + name)(self.handle, *args)

    def check(self, name, *args, allow=(types.DONE,)):
        code = self.call(name, *args)
        if code not in allow:
            raise self.failure("qret_" + name, code)
        return code

    # --- options and connection -------------------------------------------------------------

    def set(self, **options):
        """Sets options; None restores a default, True and False are spelled out."""
        for name, value in options.items():
            if isinstance(value, bool):
                value = "true" if value else "false"
            text = None if value is None else str(value).encode()
            self.check("set_option", name.encode(), text)

    def get(self, name):
        length = ctypes.c_size_t()
        self.check("get_option", name.encode(), None, 0, ctypes.byref(length))
        buffer = ctypes.create_string_buffer(length.value + 1)
        self.check("get_option", name.encode(), buffer, len(buffer), None)
        return buffer.value.decode()

    def load_env(self):
        self.check("load_env")

    def connect(self, conninfo):
        self.check("connect", None if conninfo is None else conninfo.encode())

    def attach(self, connection):
        """Borrows a psycopg2 connection's PGconn."""
        self.check("attach", ctypes.c_void_p(connection.pgconn_ptr))

    def detach(self):
        """Gives it back; True if it must be thrown away."""
        tainted = ctypes.c_int32(-1)
        self.check("detach", ctypes.byref(tainted))
        return bool(tainted.value)

    # --- schema, work list, steps -----------------------------------------------------------

    def install(self, part):
        self.check("schema_install", part.encode())

    def schema_version(self, part):
        version_number = ctypes.c_int32(-1)
        self.check("schema_version", part.encode(), ctypes.byref(version_number))
        return version_number.value

    def worklist(self):
        """The work list as named tuples."""
        return [item_of(struct) for struct in self.worklist_structs()[1]]

    def worklist_structs(self):
        """(clock, structs as qret_step takes them)."""
        handle = ctypes.c_void_p()
        self.check("worklist_build", ctypes.byref(handle))
        try:
            structs = []
            for index in range(self.lib.qret_worklist_count(handle)):
                struct = WorkItem()
                code = self.lib.qret_worklist_get(handle, index, ctypes.byref(struct))
                if code != types.DONE:
                    raise self.failure("qret_worklist_get", code)
                structs.append(struct)
            return self.lib.qret_worklist_clock_us(handle), structs
        finally:
            self.lib.qret_worklist_free(handle)

    def step(self, phase, item=None, allow=(types.DONE, types.PARTIAL)):
        """One step; its result as a dict, with the return under "code"."""
        result = StepResult()
        pointer = None if item is None else ctypes.byref(item)
        code = self.check("step", phase, pointer, ctypes.byref(result), allow=allow)
        return dict(result.as_dict(), code=code)

    def drain(self, phase, item=None):
        """Steps until done; returns rows deleted. Phases with a cursor may pass by what stays."""
        rows = 0
        while True:
            result = self.step(phase, item)
            rows += result["rows_deleted"]
            if result["done"] or (item is not None and not result["rows_deleted"]):
                return rows

    def gate_take(self):
        return self.check("gate_take", allow=(types.DONE, types.BUSY)) == types.DONE

    def gate_release(self):
        self.check("gate_release")

    # --- cycles -----------------------------------------------------------------------------

    def try_cycle(self):
        """One blocking cycle: (code, report as a dict)."""
        report = CycleReport()
        code = self.call("run_cycle", ctypes.byref(report))
        return code, report.as_dict()

    def cycle(self, allow=(types.DONE,)):
        """One blocking cycle that must end well; its report as a dict."""
        code, report = self.try_cycle()
        if code not in allow:
            raise self.failure("qret_run_cycle", code)
        return report

    run_cycle = cycle

    def report(self):
        """The running cycle's counts, or the last one's."""
        report = CycleReport()
        self.check("cycle_get_report", ctypes.byref(report))
        return report.as_dict()

    def begin(self):
        self.check("cycle_begin")

    def process(self):
        return self.call("cycle_process")

    def wait(self):
        self.check("wait")

    def poll_fds(self):
        """[(fd, events)] as the event loop would poll them."""
        count = ctypes.c_uint32()
        self.check("poll_fds", None, 0, ctypes.byref(count))
        array = (types.PollFd * max(count.value, 1))()
        self.check("poll_fds", array, count.value, ctypes.byref(count))
        return [(entry.fd, entry.events) for entry in array[: count.value]]

    def next_cycle_us(self):
        return self.lib.qret_next_cycle_us(self.handle)

    def deadline_us(self):
        return self.lib.qret_deadline_us(self.handle)

    def set_busy(self, busy):
        self.check("set_busy", int(busy))

    def stop(self):
        self.lib.qret_stop(self.handle)

    def resume(self):
        self.lib.qret_resume(self.handle)
