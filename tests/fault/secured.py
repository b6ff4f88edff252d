"""A private cluster that listens on TCP, knows passwords and speaks TLS."""

import os
import shutil
import subprocess

from pg.cluster import Cluster

PASSWORD = "s3cret-that-nobody-logs"

HBA = """
local all postgres trust
local all all trust
host all keyholder 127.0.0.1/32 scram-sha-256
host all outcast 127.0.0.1/32 reject
hostssl all all 127.0.0.1/32 trust
host all all 127.0.0.1/32 trust
"""


class Secured(Cluster):
    """Listens on 127.0.0.1; user keyholder needs PASSWORD, user outcast is rejected."""

    def __init__(self, **settings):
        super().__init__(settings=settings, tcp=True, start=False)
        try:
            self._secure()
            self.start()
            self.admin(f"CREATE ROLE keyholder LOGIN SUPERUSER PASSWORD '{PASSWORD}'")
            self.admin("CREATE ROLE outcast LOGIN")
            self.admin("CREATE ROLE lonely LOGIN CONNECTION LIMIT 0")
        except BaseException:
            self.stop()
            raise

    def _secure(self):
        with open(os.path.join(self.data, "pg_hba.conf"), "w", encoding="ascii") as rules:
            rules.write(HBA)
        if shutil.which("openssl") is None:
            return
        key, certificate = (os.path.join(self.data, name) for name in ("server.key", "server.crt"))
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
            + ["-subj", "/CN=localhost", "-keyout", key, "-out", certificate],
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.chmod(key, 0o600)
        if self.user is not None:
            for path in (key, certificate):
                os.chown(path, self.user.pw_uid, self.user.pw_gid)
        self.settings["ssl"] = "on"

    def tcp_dsn(self, dbname, **more):
        words = {
            "host": "127.0.0.1",
            "hostaddr": "127.0.0.1",
            "port": self.port,
            "dbname": dbname,
            "user": "postgres",
            "gssencmode": "disable",
        }
        words.update(more)
        return " ".join(f"{key}='{value}'" for key, value in words.items())
