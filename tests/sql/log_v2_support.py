"""The second steps called as hosts and as the library call them, and calls that run beside a
test.
"""

import threading
import time

from sql.log_support import client_statement

LATE_MS = 200


class Steps:
    """Both versions of the three steps on one connection, with cutoffs given as ages."""

    def __init__(self, log):
        self.log = log

    def retain(self, version, pid, stale=None, completed=None, rows=1000, kind=None):
        return self.log.one(
            f"SELECT {{q}}.log_retention_step_v{version}(%s, %s, %s, %s, %s)",
            pid,
            self.log.at(stale),
            self.log.at(completed),
            rows,
            kind,
        )

    def purge(self, version, pid, age, rows=1000):
        return self.log.one(
            f"SELECT {{q}}.log_txns_purge_step_v{version}(%s, %s, %s)", pid, self.log.at(age), rows
        )

    def evict(self, version, pid, age, rows=1000):
        return self.log.one(
            f"SELECT {{q}}.log_evict_max_wait_step_v{version}(%s, %s, %s)",
            pid,
            self.log.at(age),
            rows,
        )


def client(log, name, *args):
    """One of the library's statements, through the log's connection."""
    return log.execute(client_statement(name, log=log.schema), *args)


class Beside:
    """A call on a connection of its own, in a thread: its answer or its error, and how long it
    took.
    """

    def __init__(self, db, text, *args, settings=(), application="beside"):
        self.connection = db.connect(application_name=application)
        self.answer = self.error = None
        self.seconds = 0.0
        self._settings = settings
        self._thread = threading.Thread(target=self._run, args=(text, args))
        self._thread.start()

    def _run(self, text, args):
        with self.connection.cursor() as cursor:
            for setting in self._settings:
                cursor.execute(setting)
            started = time.monotonic()
            try:
                cursor.execute(text, args or None)
                self.answer = cursor.fetchone()[0] if cursor.description else cursor.rowcount
            except Exception as error:  # handed to the test, which expects some of them
                self.error = error
            self.seconds = time.monotonic() - started

    def join(self):
        self._thread.join()
        self.connection.close()
        return self

    @property
    def sqlstate(self):
        return getattr(self.error, "pgcode", None)


def wait_until_blocked(db, application="beside"):
    """Until the call beside waits for a lock."""
    for _ in range(500):
        if db.one(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s"
            " AND wait_event_type = 'Lock' AND datname = current_database()",
            application,
        ):
            return
        time.sleep(0.01)
    raise AssertionError(f"{application} never waited for a lock")
