"""Starts hosts as processes, reads what they say, ends them by pid."""

import json
import os
import signal
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))


class Host:
    """One host.py. Use it as a context manager: it is killed at the end."""

    def __init__(self, conninfo, seconds=60, env=None, prefix=(), **options):
        self.lines = []
        self.process = subprocess.Popen(  # pylint: disable=consider-using-with
            [*prefix, sys.executable, os.path.join(HERE, "host.py"), conninfo]
            + [json.dumps(options), str(seconds)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=dict(os.environ, **(env or {})),
        )
        self.pid = self.process.pid
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.kill()

    def _read(self):
        for line in self.process.stdout:
            self.lines.append(json.loads(line))

    def wait_for(self, condition, seconds=30):
        """The first line that meets the condition."""
        deadline = time.monotonic() + seconds
        seen = 0
        while True:
            while seen < len(self.lines):
                if condition(self.lines[seen]):
                    return self.lines[seen]
                seen += 1
            if time.monotonic() > deadline or self.process.poll() not in (None, 0):
                raise AssertionError(f"not in time: {self.lines[-5:]} {self.process.poll()}")
            time.sleep(0.01)

    def ends(self, *codes):
        """What it said at the end of its cycles, of all or of those outcomes."""
        return [
            line for line in self.lines if "end" in line and (not codes or line["code"] in codes)
        ]

    def signal(self, number):
        if self.process.poll() is None:
            os.kill(self.pid, number)

    def finish(self, seconds=60):
        """Waits for its end; what it wrote to stderr."""
        self.process.wait(seconds)
        self._reader.join(10)
        return self.process.stderr.read()

    def kill(self):
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGKILL)
        self.process.wait(20)
        self._reader.join(10)
        self.process.stdout.close()
        self.process.stderr.close()
