#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A host of libqretention in Python: ctypes from the standard library, nothing to compile.

    retention.py CONNINFO [CYCLES [STOP_AFTER_MS [NAME=VALUE ...]]]

Sweeps until SIGINT or SIGTERM, for CYCLES cycles (0: no limit), or until another thread stops it
after STOP_AFTER_MS milliseconds (0: never). NAME=VALUE sets an option of the library.
"""

import ctypes
import os
import select
import signal
import sys
import threading
from ctypes import POINTER, c_char_p, c_double, c_int, c_int32, c_int64, c_uint32, c_void_p

DONE, MORE, WAIT, STOPPED = 0, 1, 2, 4
LOG_INFO = 3
READ, WRITE = 1, 2
NEVER = 0x7FFFFFFFFFFFFFFF


class Report(ctypes.Structure):
    """The first 144 bytes of struct qret_cycle_report: all that this host wants to know."""

    _fields_ = [("size", c_uint32), ("outcome", c_int32)] + [
        (name, c_int64)
        for name in (
            "clock_us queues partitions steps segments_deleted messages_deleted txns_purged"
            " max_wait_evicted partitions_deleted metrics_purged events_deleted deliveries_deleted"
            " items_failed items_locked items_pinned round_trips elapsed_us"
        ).split()
    ]


class PollFd(ctypes.Structure):
    _fields_ = [("fd", c_int32), ("events", c_int32)]


class LogRecord(ctypes.Structure):
    _fields_ = [
        ("size", c_uint32),
        ("level", c_int32),
        ("event", c_char_p),
        ("text", c_char_p),
        ("suppressed", c_int64),
    ]


class Metric(ctypes.Structure):
    _fields_ = [
        ("size", c_uint32),
        ("kind", c_int32),
        ("name", c_char_p),
        ("unit", c_char_p),
        ("help", c_char_p),
        ("phase", c_char_p),
        ("value", c_double),
    ]


LOG_FN = ctypes.CFUNCTYPE(None, c_void_p, POINTER(LogRecord))
METRIC_FN = ctypes.CFUNCTYPE(None, c_void_p, POINTER(Metric))

lib = ctypes.CDLL("libqretention.so.0")
for name, result, *arguments in (
    ("qret_ctx_new", c_int, POINTER(c_void_p)),
    ("qret_ctx_free", None, c_void_p),
    ("qret_load_env", c_int, c_void_p),
    ("qret_set_option", c_int, c_void_p, c_char_p, c_char_p),
    ("qret_set_log", c_int, c_void_p, c_int32, LOG_FN, c_void_p, c_void_p),
    ("qret_set_metrics", c_int, c_void_p, METRIC_FN, c_void_p, c_void_p),
    ("qret_connect", c_int, c_void_p, c_char_p),
    ("qret_cycle_begin", c_int, c_void_p),
    ("qret_cycle_process", c_int, c_void_p),
    ("qret_cycle_get_report", c_int, c_void_p, POINTER(Report)),
    ("qret_poll_fds", c_int, c_void_p, POINTER(PollFd), c_uint32, POINTER(c_uint32)),
    ("qret_deadline_us", c_int64, c_void_p),
    ("qret_next_cycle_us", c_int64, c_void_p),
    ("qret_now_us", c_int64),
    ("qret_stop", None, c_void_p),
    ("qret_error_message", c_char_p, c_void_p),
    ("qret_error_is_retryable", c_int32, c_void_p),
):
    function = getattr(lib, name)
    function.restype, function.argtypes = result, arguments


def signal_descriptor():
    """Readable once a signal came. Python runs its handlers between its own instructions only, so
    one that comes just before a sleep would be heard after it; this ends the sleep."""
    read_end, write_end = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    return read_end


class Host:
    """One context. ctypes lets go of Python's lock in each call, so other threads run meanwhile."""

    def __init__(self, conninfo, options):
        self.ctx = c_void_p()
        self.signals = signal_descriptor()
        self.fds = (PollFd * 32)()
        self.stopping = False
        self.logs = self.metrics = 0
        if lib.qret_ctx_new(ctypes.byref(self.ctx)) != DONE:
            raise MemoryError
        # Callbacks live as long as somebody holds them, and the library is nobody to Python.
        self.log_fn, self.metric_fn = LOG_FN(self.on_log), METRIC_FN(self.on_metric)
        self.check(lib.qret_set_log(self.ctx, LOG_INFO, self.log_fn, None, None))
        self.check(lib.qret_set_metrics(self.ctx, self.metric_fn, None, None))
        self.check(lib.qret_load_env(self.ctx))
        for option in options:
            name, equals, value = option.partition("=")
            if not equals:
                raise ValueError("an option is NAME=VALUE")
            self.check(lib.qret_set_option(self.ctx, name.encode(), value.encode()))
        self.check(lib.qret_connect(self.ctx, conninfo.encode()))

    def check(self, code):
        if code != DONE:
            raise RuntimeError(self.message())

    def message(self):
        return lib.qret_error_message(self.ctx).decode(errors="replace")

    def on_log(self, _user_data, record):
        self.logs += 1
        print(record.contents.text.decode(), file=sys.stderr)

    def on_metric(self, _user_data, _metric):
        self.metrics += 1

    def stop(self, *_signal):
        """From a signal handler or from any thread."""
        self.stopping = True
        lib.qret_stop(self.ctx)

    def poll(self, until_us):
        """Sleeps until the library, a signal or the time wakes it."""
        count = c_uint32()
        self.check(lib.qret_poll_fds(self.ctx, self.fds, len(self.fds), ctypes.byref(count)))
        poller = select.poll()
        poller.register(self.signals, select.POLLIN)
        for wanted in self.fds[: count.value]:
            read = select.POLLIN if wanted.events & READ else 0
            write = select.POLLOUT if wanted.events & WRITE else 0
            poller.register(wanted.fd, read | write)
        left_ms = (until_us - lib.qret_now_us() + 999) // 1000
        ready = poller.poll(None if until_us == NEVER else max(0, min(left_ms, 0x7FFFFFFF)))
        if (self.signals, select.POLLIN) in ready:
            os.read(self.signals, 4096)  # their handlers run before the next sleep

    def cycle(self):
        """The cycle that has begun, in short calls: Python's signal handlers get their turn between
        them."""
        while True:
            code = lib.qret_cycle_process(self.ctx)
            if code == WAIT:
                self.poll(lib.qret_deadline_us(self.ctx))
            elif code != MORE:
                return code

    def report(self):
        report = Report(size=ctypes.sizeof(Report))
        self.check(lib.qret_cycle_get_report(self.ctx, ctypes.byref(report)))
        return report

    def sleep(self):
        while not self.stopping and lib.qret_next_cycle_us(self.ctx) > lib.qret_now_us():
            self.poll(lib.qret_next_cycle_us(self.ctx))

    def close(self):
        lib.qret_ctx_free(self.ctx)
        signal.set_wakeup_fd(-1)


def sweep(host, most):
    """Cycles until a stop, or until an error that only a person can mend."""
    cycles = 0
    while not host.stopping and (most == 0 or cycles < most):
        code = lib.qret_cycle_begin(host.ctx)
        if code == STOPPED:
            break  # before there was a cycle to tell of
        begun = code == DONE
        if begun:
            code = host.cycle()
        if code < 0:
            print("error:", host.message(), file=sys.stderr)
            if not begun or not lib.qret_error_is_retryable(host.ctx):
                return code
        if code != STOPPED:
            cycles += 1
        report = host.report()
        print(
            f"cycle outcome={report.outcome} segments={report.segments_deleted}"
            f" messages={report.messages_deleted} size={report.size}",
            flush=True,
        )
        if most == 0 or cycles < most:
            host.sleep()
    print(
        f"end cycles={cycles} logs={host.logs} metrics={host.metrics} stopped={int(host.stopping)}"
    )
    return DONE


def main(arguments):
    conninfo = arguments[0] if arguments else ""
    most = int(arguments[1]) if len(arguments) > 1 else 0
    stop_after_ms = int(arguments[2]) if len(arguments) > 2 else 0
    host = Host(conninfo, arguments[3:])
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, host.stop)
    timer = threading.Timer(stop_after_ms / 1000, host.stop)
    if stop_after_ms:
        timer.start()
    try:
        code = sweep(host, most)
    finally:
        timer.cancel()
        if stop_after_ms:
            timer.join()  # nobody may be inside qret_stop when the context is freed
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)  # nor may a handler stop a context that is gone
        host.close()
    return 0 if code == DONE else 1


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (RuntimeError, ValueError) as failure:
        sys.exit(f"error: {failure}")
