"""A host that watches what the library does to its process. Prints one JSON object.

    manners.py CONNINFO CYCLES

SIGPIPE is at its default, so that a careless write to a closed socket ends this process.
"""

import ctypes
import json
import os
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from pg import qret  # noqa: E402 pylint: disable=wrong-import-position

LIBC = ctypes.CDLL(None)
LIBC.setlocale.restype = ctypes.c_char_p


class Sigaction(ctypes.Structure):
    """As glibc has it. Of the mask the kernel fills in the first word alone."""

    _fields_ = [
        ("handler", ctypes.c_void_p),
        ("mask", ctypes.c_ulong * 16),
        ("flags", ctypes.c_int),
        ("restorer", ctypes.c_void_p),
    ]


def look():
    """All that a library could change behind a host's back."""
    dispositions = []
    for number in range(1, 65):
        action = Sigaction()
        if LIBC.sigaction(number, None, ctypes.byref(action)) == 0:
            dispositions.append((number, action.handler, action.mask[0], action.flags))
    old = os.umask(0)
    os.umask(old)
    return {
        "dispositions": dispositions,
        "mask": sorted(int(each) for each in signal.pthread_sigmask(signal.SIG_BLOCK, [])),
        "pending": sorted(int(each) for each in signal.sigpending()),
        "locale": LIBC.setlocale(6, None).decode(),
        "environment": sorted(f"{k}={v}" for k, v in os.environb.items()),
        "folder": os.getcwd(),
        "umask": old,
        "threads": len(os.listdir("/proc/self/task")),
        "timers": list(signal.getitimer(signal.ITIMER_REAL)),
    }


def main(conninfo, cycles):
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    first = look()
    codes, changes = [], []
    descriptors = len(os.listdir("/proc/self/fd"))
    for _ in range(int(cycles)):
        with qret.Context(conninfo, statement_timeout_ms=500, idle_limit_ms=1000) as context:
            for _ in range(2):
                codes.append(qret.types.name_of(context.try_cycle()[0]))
                if look() != first:
                    changes.append(codes[-1])
    print(
        json.dumps(
            {
                "codes": codes,
                "changes": changes,
                "descriptors": len(os.listdir("/proc/self/fd")) - descriptors,
            }
        ),
        flush=True,
    )


if __name__ == "__main__":
    main(*sys.argv[1:3])
