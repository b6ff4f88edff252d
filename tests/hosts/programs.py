"""Runs the driver and the broker as a person or a script would: in a pipe, or on a terminal."""

import fcntl
import json
import os
import pty
import select
import struct
import subprocess
import termios
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("QRETENTION_BUILD", os.path.join(ROOT, "build"))
TIMEOUT = 60


def environment(**extra):
    """Ours without what would steer libpq or the library."""
    steering = ("PG", "RETENTION_", "RELAY_", "QUEEN_", "PRUNE_", "PARTITION_", "METRICS_")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(steering)}
    return dict(kept, LC_ALL="C.UTF-8", TERM="xterm", **extra)


class Result:
    """What a program printed, and how it ended."""

    def __init__(self, code, out, err=""):
        self.code, self.out, self.err = code, out, err

    @property
    def lines(self):
        return self.out.splitlines()

    @property
    def objects(self):
        """Every line of stdout as JSON; fails where one is none."""
        return [json.loads(line) for line in self.lines]

    @property
    def object(self):
        (only,) = self.objects
        return only

    def __repr__(self):
        return f"exit code {self.code}\n--- stdout\n{self.out}\n--- stderr\n{self.err}"


class Program:
    """One executable with arguments that every call gets."""

    def __init__(self, path, dsn):
        self.path = os.path.join(BUILD, path)
        self.dsn = dsn

    def command(self, args, dsn):
        return [self.path, *args, *(["--dsn", dsn] if dsn else [])]

    def __call__(self, *args, dsn="own", env=None, timeout=TIMEOUT):
        done = subprocess.run(
            self.command(args, self.dsn if dsn == "own" else dsn),
            env=environment(**(env or {})),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        return Result(done.returncode, done.stdout, done.stderr)

    def start(self, *args, env=None, **options):
        """Starts it and comes back at once."""
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        return subprocess.Popen(  # pylint: disable=consider-using-with
            self.command(args, self.dsn),
            env=environment(**(env or {})),
            stdin=subprocess.DEVNULL,
            text=True,
            **options,
        )

    def on_terminal(self, *args, columns=80, timeout=TIMEOUT):
        """Runs it on a terminal of its own; stdout and stderr come mixed, as a person sees them."""
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        process = self.start(*args, stdout=slave, stderr=slave)
        os.close(slave)
        seen = b""
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            if select.select([master], [], [], 0.1)[0]:
                try:
                    chunk = os.read(master, 65536)
                except OSError:  # the other side is closed
                    break
                if not chunk:
                    break
                seen += chunk
        os.close(master)
        return Result(process.wait(5), seen.decode())


class Driver(Program):
    def __init__(self, dsn):
        super().__init__("examples/qretention/qretention", dsn)


class Broker(Program):
    def __init__(self, dsn):
        super().__init__("examples/broker/broker", dsn)


def fill(db, queue="orders", segments=20, age="1 day", **policy):
    """A queue with one partition of segments of ten messages, all of one age. Returns its id."""
    settings = {"retention_enabled": True, "retention_seconds": 3600, **policy}
    names = ", ".join(settings)
    marks = ", ".join(["%s"] * len(settings))
    queue_id = db.one(
        f"INSERT INTO queen.queues (name, {names}) VALUES (%s, {marks}) RETURNING id",
        queue,
        *settings.values(),
    )
    partition = db.one(
        "INSERT INTO queen.log_partitions (queue_id, last_offset) VALUES (%s, %s) RETURNING id",
        queue_id,
        segments * 10 - 1,
    )
    for table, column, value in (("log_segments", "blob", "x"), ("log_txns", "hashes", "y" * 160)):
        db.sql(
            f"INSERT INTO queen.{table} (partition_id, base_offset, end_offset, created_at, {column})"
            " SELECT %s, n * 10, n * 10 + 9, now() - %s::interval, %s"
            " FROM generate_series(0, %s - 1) AS n",
            partition,
            age,
            value.encode(),
            segments,
        )
    return partition


def wait_for(condition, seconds=20):
    """Until the condition holds; fails the test otherwise."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come in time"
        time.sleep(0.02)
