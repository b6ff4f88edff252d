"""A primary and a hot standby of it, both private and on TCP."""

import os
import subprocess
import time

from pg.cluster import Cluster

PRIMARY = {
    "wal_level": "replica",
    "max_wal_senders": "4",
    "hot_standby": "on",
    "wal_keep_size": "64MB",
}


class Standby(Cluster):
    """A copy of the primary that follows it until promote()."""

    def __init__(self, primary):
        self.primary = primary
        super().__init__(settings=PRIMARY, tcp=True)

    def _make(self):
        if self.user is not None:
            os.chown(self.folder, self.user.pw_uid, self.user.pw_gid)
        os.chmod(self.folder, 0o755)
        command = [
            os.path.join(self.bindir, "pg_basebackup"),
            "--pgdata=" + self.data,
            "--host=" + self.primary.folder,
            f"--port={self.primary.port}",
            "--username=postgres",
            "--checkpoint=fast",
            "--wal-method=stream",
            "--write-recovery-conf",
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
            raise RuntimeError("pg_basebackup failed:\n" + made.stdout)

    def catch_up(self, seconds=30):
        """Waits until all that the primary has written is here."""
        (target,) = self.primary.admin("SELECT pg_current_wal_flush_lsn()::text")[0]
        deadline = time.monotonic() + seconds
        while not self.admin("SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn", target)[0][0]:
            if time.monotonic() > deadline:
                raise RuntimeError("the standby does not catch up")
            time.sleep(0.02)

    def promote(self):
        assert self.admin("SELECT pg_promote(true, 60)")[0][0]


def primary():
    return Cluster(settings=PRIMARY, tcp=True)


class Pair:
    """A database of a primary that others use too, and a standby. Use it as a context manager."""

    def __init__(self, server):
        self.primary = server

    def __enter__(self):
        self.db = self.primary.create_database(("broker", "log"))
        self.standby = Standby(self.primary)
        return self

    def __exit__(self, *exc):
        self.standby.stop()
        if self.primary.process is None:
            self.primary.start()
        self.primary.admin("ALTER SYSTEM RESET ALL")
        self.primary.admin("SELECT pg_reload_conf()")
        deadline = time.monotonic() + 10  # a reload reaches a session in its own time
        while self.primary.admin("SHOW default_transaction_read_only") != [("off",)]:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        self.db.close()
        self.primary.close_connections()
        self.db.drop()

    def dsn(self, *servers, **more):
        words = {
            "host": ",".join("127.0.0.1" for _ in servers),
            "port": ",".join(str(server.port) for server in servers),
            "dbname": self.db.name,
            "user": "postgres",
            "gssencmode": "disable",
        }
        words.update(more)
        return " ".join(f"{key}='{value}'" for key, value in words.items())
