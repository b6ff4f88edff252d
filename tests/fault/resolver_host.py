"""Runs in a child with resolver.c in front of the C library. Prints one JSON object.

    resolver_host.py HOOK CONNINFO-BY-NAME CONNINFO-BY-ADDRESS

One context looks a name up and hangs there; meanwhile it is stopped, and another one works.
"""

import ctypes
import json
import os
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from cycle import support  # noqa: E402 pylint: disable=wrong-import-position
from pg import qret  # noqa: E402 pylint: disable=wrong-import-position


def main(hook, by_name, by_address):
    resolver = ctypes.CDLL(hook)
    codes, found = [], {}
    with qret.Context(by_name) as stuck, qret.Context(by_address) as other:
        thread = threading.Thread(target=lambda: codes.append(stuck.try_cycle()[0]))
        thread.start()
        found["hangs"] = support.eventually(resolver.resolver_waiting)
        started = time.monotonic()
        code, report = other.try_cycle()
        found["other"] = qret.types.name_of(code)
        found["deleted"] = report["segments_deleted"]
        stuck.stop()
        found["stop_seconds"] = time.monotonic() - started
        found["still_hangs"] = bool(resolver.resolver_waiting())
        thread.join()
        found["stuck"] = qret.types.name_of(codes[0])
        stuck.resume()
        stuck.connect(by_address)
        found["mended"] = qret.types.name_of(stuck.try_cycle()[0])
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:4])
