"""The server that the bench runs on, and what it and the machine are. No measuring here."""

import os
import platform
import re
import shutil
import tempfile

import psycopg2

from pg import qret
from pg.cluster import PREFIX, Cluster

# A two-core machine with some memory. Nothing is synced, so that work is compared and not disks, and the
# baselines have the same synchronous_commit as ours; P5 alone is about waiting, and has its log synced.
SETTINGS = {
    "shared_buffers": "1GB",
    "work_mem": "16MB",
    "maintenance_work_mem": "256MB",
    "effective_cache_size": "4GB",
    "wal_buffers": "16MB",
    "max_wal_size": "16GB",
    "random_page_cost": "1.1",
    "track_commit_timestamp": "on",
    "autovacuum": "off",
}

PARTS = ("broker", "log")

# Never memory, where a sync would cost nothing.
DISK = "/var/tmp"


class Server(Cluster):
    """A cluster whose databases are copied from ones that were filled once.

    synced: its log lies on a disk and is synced, as it does wherever data matters.
    """

    def __init__(self, synced=False):
        self._filled = {}
        self._log_folder = None
        settings = dict(SETTINGS, fsync="on") if synced else SETTINGS
        super().__init__(settings, tcp=True, start=False)
        try:
            if synced:
                self._move_log()
            self.start()
        except BaseException:
            self.stop()
            raise

    def _move_log(self):
        # pylint: disable-next=consider-using-with # lives as long as the server
        self._log_folder = tempfile.TemporaryDirectory(prefix=PREFIX, dir=DISK)
        here, there = os.path.join(self.data, "pg_wal"), os.path.join(self._log_folder.name, "pg_wal")
        shutil.move(here, there)
        os.symlink(there, here)
        if self.user is not None:
            for folder, _, files in os.walk(self._log_folder.name):
                for path in [folder, *(os.path.join(folder, name) for name in files)]:
                    os.chown(path, self.user.pw_uid, self.user.pw_gid)

    def stop(self):
        super().stop()
        if self._log_folder is not None:
            self._log_folder.cleanup()

    def filled(self, name, fill, parts=PARTS):
        """A copy of the database that fill(db) makes, with hint bits set and statistics."""
        if name not in self._filled:
            source = self.create_database(parts, name="source_" + name)
            fill(source)
            source.sql("VACUUM ANALYZE")
            source.close()
            self.close_connections()
            self._filled[name] = source
        self._serial += 1
        copy = f"copy_{self._serial}"
        self.admin(
            f'CREATE DATABASE "{copy}" TEMPLATE "source_{name}"'
            + (" STRATEGY FILE_COPY" if self.version >= 150000 else "")
        )
        return _database(self, copy)

    def forget(self, name):
        """Drops what filled() keeps, where it takes much room."""
        if name in self._filled:
            self._filled.pop(name).drop()


def _database(server, name):
    from pg.cluster import Database

    return Database(server, name)


def connect(db, commit="off", **settings):
    """A connection for a baseline: autocommit, and the same session settings as the library's."""
    connection = db.connect(**settings)
    with connection.cursor() as cursor:
        cursor.execute(f"SET jit = off; SET synchronous_commit = {commit}")
    return connection


def _cpu_name():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            found = re.search(r"^model name\s*:\s*(.+)$", file.read(), re.M)
    except OSError:
        found = None
    return found[1].strip() if found else platform.machine()


def _memory_gb():
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)


def facts(server):
    """(name, value) of what a figure depends on."""
    rows = [
        ("machine", f"{os.cpu_count()} cores of {_cpu_name()}, {_memory_gb():.0f} GB"),
        ("system", f"{platform.system()} {platform.release().split('-')[0]}, {platform.machine()}"),
        ("server", server.admin("SHOW server_version")[0][0]),
        ("libpq", psycopg2.extensions.libpq_version()),
        ("library", f"libqretention {qret.version()}, release build"),
        ("python", f"{platform.python_version()}, psycopg2 {psycopg2.__version__.split()[0]}"),
    ]
    shown = dict(server.settings)
    rows.append(("settings", ", ".join(f"{k} = {v}" for k, v in shown.items() if k not in _HIDDEN)))
    return rows


_HIDDEN = ("log_checkpoints", "log_line_prefix", "log_timezone", "timezone", "lc_messages")


def fresh(server, fill, parts=PARTS):
    """A database used once: filled, with statistics."""
    db = server.create_database(parts)
    fill(db)
    db.sql("VACUUM ANALYZE")
    return db
