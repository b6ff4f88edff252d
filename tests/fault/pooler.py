"""A private PgBouncer: transaction mode, Debian's defaults, two server connections."""

import ctypes
import os
import shutil
import signal
import subprocess
import tempfile
import time

import psycopg2

from pg.cluster import free_port, unprivileged_user

CONFIG = """
[databases]
* = host={socket} port={port} user=postgres

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listen}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 2
logfile = {folder}/log
pidfile = {folder}/pid
admin_users = postgres
"""


PR_SET_PDEATHSIG = 1


def binary():
    found = shutil.which("pgbouncer", path=os.environ.get("PATH", "") + ":/usr/sbin")
    if not found:
        raise FileNotFoundError("pgbouncer is not installed")
    return found


class PgBouncer:
    """Started on construction in front of a cluster. Use it as a context manager."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.port = free_port()
        self.folder = tempfile.mkdtemp(prefix="qret-pooler-")
        user = unprivileged_user()
        config = os.path.join(self.folder, "pgbouncer.ini")
        with open(config, "w", encoding="utf-8") as out:
            out.write(
                CONFIG.format(
                    socket=cluster.folder, port=cluster.port, listen=self.port, folder=self.folder
                )
            )
        identity = {}
        if user is not None:
            os.chown(self.folder, user.pw_uid, user.pw_gid)
            identity = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        os.chmod(self.folder, 0o755)
        libc = ctypes.CDLL(None)
        self.process = subprocess.Popen(  # pylint: disable=consider-using-with
            [binary(), config],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            # A run that is killed leaves none behind.
            preexec_fn=lambda: libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM),
            **identity,
        )
        self._wait()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _wait(self):
        deadline = time.monotonic() + 20
        while True:
            try:
                psycopg2.connect(self.dsn("postgres")).close()
                return
            except psycopg2.OperationalError:
                if time.monotonic() > deadline or self.process.poll() is not None:
                    raise RuntimeError("PgBouncer did not start:\n" + self.log()) from None
                time.sleep(0.05)

    def reconnect(self):
        """Gives up its server connections.

        PgBouncer 1.18 hands one on while answers to a client that was killed in mid-pipeline are
        still to come, and the next client takes them for its own.
        """
        connection = psycopg2.connect(self.dsn("pgbouncer"))
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute("RECONNECT")
        connection.close()

    def dsn(self, dbname, **more):
        words = {"host": "127.0.0.1", "hostaddr": "127.0.0.1", "port": self.port}
        words.update({"dbname": dbname, "user": "postgres"}, **more)
        return " ".join(f"{key}='{value}'" for key, value in words.items())

    def log(self):
        try:
            with open(os.path.join(self.folder, "log"), encoding="utf-8") as lines:
                return lines.read()
        except FileNotFoundError:
            return ""
