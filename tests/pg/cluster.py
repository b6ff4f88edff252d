"""A private PostgreSQL cluster: made in a temporary folder, unix socket only, gone at the end.

It is no wrapper around the machine's own clusters, which it neither finds nor touches.
"""

import contextlib
import ctypes
import fcntl
import glob
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import psycopg2
import psycopg2.extensions

from . import qret

START_SECONDS = 60
STOP_SECONDS = 20
PR_SET_PDEATHSIG = 1
SHARED_MEMORY = "/dev/shm"
PLENTY_BYTES = 4 << 30
PREFIX = "qret-"
YOUNG_SECONDS = 60
RUN_FOLDER = "QRETENTION_TEST_RUN_FOLDER"  # set by us, for the processes that we start

# What a throw-away server needs: no durability, and no background work that makes runs differ.
SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "on",
    "autovacuum": "off",
    "max_connections": "100",
    "shared_buffers": "64MB",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_wal_size": "512MB",
    "checkpoint_timeout": "1h",
    "dynamic_shared_memory_type": "mmap",  # in the data folder, so it goes with it
    "log_checkpoints": "off",
    "log_line_prefix": "%m [%p] %q%u@%d/%a ",
    "log_timezone": "UTC",
    "timezone": "UTC",
    "lc_messages": "C",
}


def binaries():
    """The folder with initdb and postgres: QRETENTION_PGBIN, else the newest of Debian's."""
    chosen = os.environ.get("QRETENTION_PGBIN")
    if chosen:
        return chosen
    found = glob.glob("/usr/lib/postgresql/*/bin/initdb")
    if found:
        newest = max(found, key=lambda path: float(re.search(r"postgresql/([0-9.]+)/", path)[1]))
        return os.path.dirname(newest)
    on_path = shutil.which("initdb")
    if on_path:
        return os.path.dirname(on_path)
    raise RuntimeError("no PostgreSQL server found: install postgresql, or set QRETENTION_PGBIN")


def unprivileged_user():
    """PostgreSQL refuses to run as root; None where we already are somebody else."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise RuntimeError("neither a user postgres nor a user nobody to run the server as")


def parent_folder():
    """Memory where there is plenty of it, since a database is copied for every test."""
    chosen = os.environ.get("QRETENTION_TEST_FOLDER")
    if chosen:
        return chosen
    if os.path.ismount(SHARED_MEMORY) and os.access(SHARED_MEMORY, os.W_OK):
        if shutil.disk_usage(SHARED_MEMORY).free >= PLENTY_BYTES:
            return SHARED_MEMORY
    return "/tmp"


def remove_orphans(parent):
    """Folders of runs that were killed: nobody holds the lock on their file "owner" any more."""
    for owner in glob.glob(os.path.join(parent, PREFIX + "*", "owner")):
        try:
            with open(owner, "rb") as file:
                if time.time() - os.fstat(file.fileno()).st_mtime < YOUNG_SECONDS:
                    continue  # its maker may not have locked it yet
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(os.path.dirname(owner), ignore_errors=True)
        except OSError:
            continue


def make_folder(parent=None):
    """(folder, the file that is locked as long as its maker lives): see remove_orphans."""
    parent = parent or parent_folder()
    remove_orphans(parent)
    folder = tempfile.mkdtemp(prefix=PREFIX, dir=parent)
    owner = open(os.path.join(folder, "owner"), "wb")  # pylint: disable=consider-using-with
    fcntl.flock(owner, fcntl.LOCK_EX)
    return folder, owner


class RunFolder:
    """What the processes of one run share: the data folder that their clusters are copies of."""

    def __init__(self):
        self.folder, self._owner = make_folder()
        os.chmod(self.folder, 0o755)
        os.environ[RUN_FOLDER] = self.folder

    def remove(self):
        os.environ.pop(RUN_FOLDER, None)
        shutil.rmtree(self.folder, ignore_errors=True)
        self._owner.close()


@contextlib.contextmanager
def run_folder():
    """The run's folder, for one process at a time; None where there is no run."""
    folder = os.environ.get(RUN_FOLDER)
    if folder is None:
        yield None
        return
    with open(os.path.join(folder, "lock"), "wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def quote(text):
    """A value for a conninfo string."""
    return "'" + str(text).replace("\\", "\\\\").replace("'", "\\'") + "'"


class Database:
    """One database of a cluster, with short ways to ask it things."""

    def __init__(self, cluster, name):
        self.cluster = cluster
        self.name = name
        self.dsn = cluster.dsn(name)
        self._own = None

    def connect(self, autocommit=True, **settings):
        """A new connection. Keywords are libpq's: user, options, application_name, ..."""
        connection = psycopg2.connect(self.dsn, **settings)
        connection.autocommit = autocommit
        self.cluster.remember(connection)
        return connection

    def sql(self, text, *args):
        """Runs one statement on a connection kept for this, and returns its rows."""
        if self._own is None or self._own.closed:
            self._own = self.connect()
        with self._own.cursor() as cursor:
            cursor.execute(text, args or None)
            return cursor.fetchall() if cursor.description else []

    def one(self, text, *args):
        rows = self.sql(text, *args)
        return rows[0][0] if rows else None

    def close(self):
        if self._own is not None:
            self._own.close()
            self._own = None

    def drop(self):
        self.close()
        self.cluster.drop_database(self.name)


class Cluster:
    """Started on construction. Use it as a context manager, or call stop()."""

    def __init__(self, settings=None, tcp=False, start=True, parent=None):
        self.user = unprivileged_user()
        self.bindir = binaries()
        self.settings = dict(SETTINGS, **(settings or {}))
        self.port = free_port() if tcp else 5432
        self.tcp = tcp
        self.folder, self._owner = make_folder(parent)
        self.data = os.path.join(self.folder, "data")
        self.log_path = os.path.join(self.folder, "log")
        self.process = None
        self.version = 0
        self._templates = {}
        self._serial = 0
        self._connections = []
        self._admin = None
        try:
            self._make()
            if start:
                self.start()
        except BaseException:
            self.stop()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.stop()

    # --- the server -------------------------------------------------------------------------

    def _identity(self):
        if self.user is None:
            return {}
        return {
            "user": self.user.pw_uid,
            "group": self.user.pw_gid,
            "extra_groups": [],
        }

    def _environment(self):
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PG", "LC_", "LANG"))}
        return dict(kept, LC_ALL="C", HOME=self.folder)

    def _make(self):
        if self.user is not None:
            os.chown(self.folder, self.user.pw_uid, self.user.pw_gid)
        os.chmod(self.folder, 0o755)
        with run_folder() as shared:
            if shared is None:
                self._initdb(self.data)
                return
            template = os.path.join(shared, "template", "data")
            if not os.path.exists(template):
                self._make_template(template)
        subprocess.run(["cp", "-a", "--reflink=auto", template, self.data], check=True)

    def _make_template(self, template):
        """initdb takes a second of the processor, a copy a twentieth of it."""
        parent = os.path.dirname(template)
        os.makedirs(parent, exist_ok=True)
        if self.user is not None:
            os.chown(parent, self.user.pw_uid, self.user.pw_gid)
        self._initdb(template)

    def _initdb(self, data):
        command = [
            os.path.join(self.bindir, "initdb"),
            "--pgdata=" + data,
            "--username=postgres",
            "--auth=trust",
            "--encoding=UTF8",
            "--locale=C",
            "--no-sync",
        ]
        made = subprocess.run(
            command,
            cwd=self.folder,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            **self._identity(),
        )
        if made.returncode != 0:
            raise RuntimeError("initdb failed:\n" + made.stdout)

    def _command(self):
        command = [
            os.path.join(self.bindir, "postgres"),
            "-D",
            self.data,
            "-k",
            self.folder,
            "-p",
            str(self.port),
            "-c",
            "listen_addresses=" + ("127.0.0.1" if self.tcp else ""),
        ]
        for name, value in self.settings.items():
            command += ["-c", f"{name}={value}"]
        return command

    def start(self):
        """Starts the server and waits until it answers."""
        libc = ctypes.CDLL(None)

        def die_with_parent():
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGQUIT)

        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(  # pylint: disable=consider-using-with
                self._command(),
                cwd=self.folder,
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # a Ctrl-C is ours to handle, not the server's
                preexec_fn=die_with_parent,
                **self._identity(),
            )
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                probe = psycopg2.connect(self.dsn("postgres"))
                self.version = probe.server_version
                probe.close()
                return
            except psycopg2.OperationalError as error:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    text = f"the server did not start: {error}\n{self.log()}"
                    raise RuntimeError(text) from error
                time.sleep(0.02)

    def kill(self, how=signal.SIGQUIT):
        """Ends the server and keeps the data, so that start() can follow."""
        self._forget_connections()
        if self.process is None:
            return
        if self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGCONT)
            os.kill(self.process.pid, how)
            try:
                self.process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process = None

    def restart(self, how=signal.SIGINT):
        self.kill(how)
        self.start()

    def stop(self):
        """Ends the server and removes everything. Fine to call twice."""
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
        self._owner.close()

    def log(self, since=0):
        """What the server wrote, from a byte offset on."""
        try:
            with open(self.log_path, "rb") as log:
                log.seek(since)
                return log.read().decode("utf-8", "replace")
        except FileNotFoundError:
            return ""

    def log_size(self):
        try:
            return os.path.getsize(self.log_path)
        except FileNotFoundError:
            return 0

    # --- connections ------------------------------------------------------------------------

    def dsn(self, dbname="postgres", host=None):
        """A conninfo string. host: another one than the socket, for instance 127.0.0.1."""
        return "host={} port={} dbname={} user=postgres".format(
            quote(host or self.folder), self.port, quote(dbname)
        )

    def remember(self, connection):
        self._connections = [c for c in self._connections if not c.closed]
        self._connections.append(connection)

    def _forget_connections(self):
        for connection in self._connections:
            connection.close()
        self._connections = []
        self._admin = None

    def close_connections(self):
        """Closes what Database.connect() handed out and the test left open."""
        for connection in self._connections:
            if connection is not self._admin:
                connection.close()
        self._connections = [] if self._admin is None else [self._admin]

    def admin(self, text, *args):
        """Runs one statement as superuser in the database postgres."""
        if self._admin is None or self._admin.closed:
            self._admin = psycopg2.connect(self.dsn("postgres"))
            self._admin.autocommit = True
            self.remember(self._admin)
        with self._admin.cursor() as cursor:
            cursor.execute(text, args or None)
            return cursor.fetchall() if cursor.description else []

    # --- databases --------------------------------------------------------------------------

    def create_database(self, parts=(), name=None, options=""):
        """A fresh database with parts installed, copied from a template made once."""
        if parts:
            options = f'TEMPLATE "{self._template(tuple(parts))}" {options}'
        else:
            options = f"TEMPLATE template0 {options}"
        if name is None:
            self._serial += 1
            name = f"test_{self._serial}"
        if self.version >= 150000:
            options += " STRATEGY FILE_COPY"  # half the time of the default for a small database
        self.admin('CREATE DATABASE "{}" {}'.format(name.replace('"', '""'), options))
        return Database(self, name)

    def drop_database(self, name):
        self.admin('DROP DATABASE IF EXISTS "{}" WITH (FORCE)'.format(name.replace('"', '""')))

    def _template(self, parts):
        if parts not in self._templates:
            name = "template_" + "_".join(parts)
            qret.refuse_stale()
            self.admin(f'CREATE DATABASE "{name}" TEMPLATE template0')
            with qret.Context(self.dsn(name)) as context:
                for part in parts:
                    context.install(part)
            self._templates[parts] = name
        return self._templates[parts]
