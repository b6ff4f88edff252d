"""Runs in a child with interpose.c in front of libpq: one cycle for every call that can be struck.

    calls.py INTERPOSER CONNINFO MODE

MODE is 1 (the socket is shut down before the call) or 2 (the call fails). Prints a JSON line each:
the call's number, its name, what the cycle returned, and what the next one found.
"""

import ctypes
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import psycopg2  # noqa: E402 pylint: disable=wrong-import-position

from fault import worlds  # noqa: E402 pylint: disable=wrong-import-position
from pg import qret  # noqa: E402 pylint: disable=wrong-import-position

OPTIONS = {"batch_size": 2, "step_target_ms": 600_000, "statement_timeout_ms": 2000}


class Rows:
    """As much of pg.cluster.Database as the worlds need."""

    def __init__(self, conninfo):
        self.connection = psycopg2.connect(conninfo)
        self.connection.autocommit = True

    def sql(self, text, *args):
        with self.connection.cursor() as cursor:
            cursor.execute(text, args or None)
            return cursor.fetchall() if cursor.description else []

    def one(self, text, *args):
        return self.sql(text, *args)[0][0]


def main(interposer, conninfo, mode):
    hook = ctypes.CDLL(interposer)
    hook.interpose_struck.restype = ctypes.c_char_p
    hook.interpose_arm(0, 0)
    db = Rows(conninfo)
    _, ids = worlds.fill(db)
    pushed = worlds.SEGMENTS
    nth = 0
    with qret.Context(conninfo, **OPTIONS) as healer:
        healer.cycle()
        before = worlds.descriptors()
        while True:
            nth += 1
            worlds.refill(db, ids)
            pushed += worlds.SEGMENTS
            with qret.Context(conninfo, **OPTIONS) as context:
                hook.interpose_arm(int(mode), nth)
                code, report = context.try_cycle()
                struck = hook.interpose_struck().decode()
                hook.interpose_arm(0, 0)
                message = context.message
            healed = worlds.heal(healer)
            line = {
                "call": nth,
                "name": struck,
                "code": qret.types.name_of(code),
                "message": message,
                "counted": report["messages_deleted"] + healed["messages_deleted"],
                "exact": worlds.audited(db) == pushed,
                "leaked": worlds.descriptors() - before,
            }
            print(json.dumps(line), flush=True)
            if not struck or nth > 1000:
                return


if __name__ == "__main__":
    main(*sys.argv[1:4])
