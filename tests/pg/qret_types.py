"""The C interface in ctypes terms: constants, structs, and every prototype. No behaviour."""

import ctypes
from ctypes import POINTER, Structure, c_char_p, c_double, c_int, c_int32, c_int64, c_size_t
from ctypes import c_uint8, c_uint32, c_uint64, c_void_p

OUTCOMES = {
    "DONE": 0,
    "MORE": 1,
    "WAIT": 2,
    "BUSY": 3,
    "STOPPED": 4,
    "PARTIAL": 5,
    "PAUSED": 6,
    "STANDBY": 7,
    "BUDGET": 8,
    "ERR_NOMEM": -1,
    "ERR_ARGUMENT": -2,
    "ERR_STATE": -3,
    "ERR_REENTRANT": -4,
    "ERR_FORKED": -5,
    "ERR_OPTION": -6,
    "ERR_CONNECTION": -7,
    "ERR_TIMEOUT": -8,
    "ERR_SQL": -9,
    "ERR_SCHEMA": -10,
    "ERR_PRIVILEGE": -11,
    "ERR_LEADER_LOST": -12,
}
DONE, MORE, WAIT, BUSY, STOPPED, PARTIAL, PAUSED, STANDBY, BUDGET = range(9)
ERR_NOMEM, ERR_ARGUMENT, ERR_STATE, ERR_REENTRANT, ERR_FORKED, ERR_OPTION = range(-1, -7, -1)
ERR_CONNECTION, ERR_TIMEOUT, ERR_SQL, ERR_SCHEMA = range(-7, -11, -1)
ERR_PRIVILEGE, ERR_LEADER_LOST = -11, -12

PHASE_RETENTION, PHASE_TXNS_PURGE, PHASE_MAX_WAIT = 1, 2, 3
PHASE_PARTITION_CLEANUP, PHASE_METRICS_PURGE, PHASE_EVENT_PRUNE = 4, 5, 6
LOG_NONE, LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG = range(5)
METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM = 1, 2, 3
POLL_READ, POLL_WRITE = 1, 2
CUTOFF_OFF = -(1 << 63)
NO_DEADLINE = (1 << 63) - 1


def name_of(code):
    """ "DONE", "ERR_SQL", ...; the number itself where it is unknown."""
    for name, value in OUTCOMES.items():
        if value == code:
            return name
    return str(code)


def _fields(kind, names):
    return [(name, kind) for name in names.split()]


class Sized(Structure):
    """A struct that begins with its own size."""

    def __init__(self, **values):
        super().__init__(**values)
        if "size" not in values:
            self.size = ctypes.sizeof(self)

    def as_dict(self):
        return {name: getattr(self, name) for name, _ in self._fields_ if name != "size"}


class WorkItem(Sized):
    _fields_ = [
        ("size", c_uint32),
        ("flags", c_uint32),
        ("partition_id", c_uint8 * 16),
        ("queue_id", c_uint8 * 16),
    ] + _fields(
        c_int64, "all_cutoff_us completed_cutoff_us txns_cutoff_us max_wait_cutoff_us"
    )


class StepResult(Sized):
    _fields_ = [("size", c_uint32), ("done", c_int32)] + _fields(
        c_int64, "rows_deleted messages_deleted watermark elapsed_us"
    )


class CycleReport(Sized):
    _fields_ = [("size", c_uint32), ("outcome", c_int32)] + _fields(
        c_int64,
        "clock_us queues partitions steps segments_deleted messages_deleted txns_purged"
        " max_wait_evicted partitions_deleted metrics_purged events_deleted deliveries_deleted"
        " items_failed items_locked items_pinned round_trips elapsed_us"
        " events_succeeded events_settled events_own_window events_default_window"
        " events_oversize rows_poison consecutive_failures last_success_us oldest_overdue_us",
    )


class PollFd(Structure):
    _fields_ = [("fd", c_int32), ("events", c_int32)]


class LogRecord(Sized):
    _fields_ = [
        ("size", c_uint32),
        ("level", c_int32),
        ("event", c_char_p),
        ("text", c_char_p),
        ("suppressed", c_int64),
    ]


class Metric(Sized):
    _fields_ = [
        ("size", c_uint32),
        ("kind", c_int32),
        ("name", c_char_p),
        ("unit", c_char_p),
        ("help", c_char_p),
        ("phase", c_char_p),
        ("value", c_double),
    ]


class OptionInfo(Sized):
    _fields_ = [("size", c_uint32), ("flags", c_uint32)] + _fields(
        c_char_p, "name env type default_value range help"
    )


LOG_FN = ctypes.CFUNCTYPE(None, c_void_p, POINTER(LogRecord))
METRIC_FN = ctypes.CFUNCTYPE(None, c_void_p, POINTER(Metric))
FREE_FN = ctypes.CFUNCTYPE(None, c_void_p)

CTX = c_void_p
PROTOTYPES = {
    "qret_version": (c_char_p, []),
    "qret_version_number": (c_uint32, []),
    "qret_now_us": (c_int64, []),
    "qret_strerror": (c_char_p, [c_int]),
    "qret_ctx_new": (c_int, [POINTER(CTX)]),
    "qret_ctx_free": (None, [CTX]),
    "qret_set_option": (c_int, [CTX, c_char_p, c_char_p]),
    "qret_get_option": (c_int, [CTX, c_char_p, c_char_p, c_size_t, POINTER(c_size_t)]),
    "qret_load_env": (c_int, [CTX]),
    "qret_option_get_info": (c_int, [c_uint32, POINTER(OptionInfo)]),
    "qret_set_log": (c_int, [CTX, c_int32, LOG_FN, c_void_p, FREE_FN]),
    "qret_set_metrics": (c_int, [CTX, METRIC_FN, c_void_p, FREE_FN]),
    "qret_metric_get_info": (c_int, [c_uint32, POINTER(Metric)]),
    "qret_connect": (c_int, [CTX, c_char_p]),
    "qret_attach": (c_int, [CTX, c_void_p]),
    "qret_detach": (c_int, [CTX, POINTER(c_int32)]),
    "qret_schema_install": (c_int, [CTX, c_char_p]),
    "qret_schema_version": (c_int, [CTX, c_char_p, POINTER(c_int32)]),
    "qret_worklist_build": (c_int, [CTX, POINTER(c_void_p)]),
    "qret_worklist_count": (c_uint64, [c_void_p]),
    "qret_worklist_clock_us": (c_int64, [c_void_p]),
    "qret_worklist_get": (c_int, [c_void_p, c_uint64, POINTER(WorkItem)]),
    "qret_worklist_free": (None, [c_void_p]),
    "qret_step": (c_int, [CTX, c_int32, POINTER(WorkItem), POINTER(StepResult)]),
    "qret_gate_take": (c_int, [CTX]),
    "qret_gate_release": (c_int, [CTX]),
    "qret_run_cycle": (c_int, [CTX, POINTER(CycleReport)]),
    "qret_cycle_begin": (c_int, [CTX]),
    "qret_cycle_process": (c_int, [CTX]),
    "qret_cycle_get_report": (c_int, [CTX, POINTER(CycleReport)]),
    "qret_poll_fds": (c_int, [CTX, POINTER(PollFd), c_uint32, POINTER(c_uint32)]),
    "qret_deadline_us": (c_int64, [CTX]),
    "qret_wait": (c_int, [CTX]),
    "qret_next_cycle_us": (c_int64, [CTX]),
    "qret_set_busy": (c_int, [CTX, c_int32]),
    "qret_stop": (None, [CTX]),
    "qret_resume": (None, [CTX]),
    "qret_error_message": (c_char_p, [CTX]),
    "qret_error_sqlstate": (c_char_p, [CTX]),
    "qret_error_hint": (c_char_p, [CTX]),
    "qret_error_is_retryable": (c_int32, [CTX]),
}
