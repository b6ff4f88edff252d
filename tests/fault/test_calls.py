"""The connection dies, or libpq refuses, at every single call that the library makes of it."""

import json
import os
import subprocess
import sys

import pytest

from fault import sanitizers, worlds

HERE = os.path.dirname(os.path.abspath(__file__))

# A failure that libpq alone knows of, at these, is not one of the connection: what it may come to.
FAILS = {
    "PQconnectStartParams": {
        "ERR_CONNECTION",
        "DONE",
    },  # counted twice: it calls PQconnectPoll itself
    "PQgetResult": {"ERR_CONNECTION", "ERR_SQL", "ERR_TIMEOUT", "DONE"},
    "PQsetnonblocking": {"ERR_STATE", "ERR_CONNECTION"},
    "PQenterPipelineMode": {"ERR_STATE", "ERR_CONNECTION"},
    "PQflush": {"ERR_CONNECTION", "DONE"},
    "PQpipelineSync": {"ERR_CONNECTION", "DONE"},
    "PQconsumeInput": {"ERR_CONNECTION", "DONE"},
    "PQsendQueryParams": {"ERR_CONNECTION", "DONE"},
}


@pytest.mark.slow
@pytest.mark.parametrize("mode", [1, 2], ids=["socket shut down", "call fails"])
def test_every_libpq_call(db, tmp_path, mode):
    hook = sanitizers.interposer(tmp_path)
    command = [sys.executable, os.path.join(HERE, "calls.py"), hook, db.dsn, str(mode)]
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=170,
        env=dict(os.environ, LD_PRELOAD=hook),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(lines) > 60 and lines[-1]["name"] == ""
    assert lines[-1]["code"] == "DONE"
    for line in lines[:-1]:
        allowed = (
            {"ERR_CONNECTION", "DONE"} if mode == 1 else FAILS.get(line["name"], {"ERR_CONNECTION"})
        )
        assert line["code"] in allowed, line
        assert line["exact"], line
        assert line["counted"] <= worlds.SEGMENTS, line
        assert line["leaked"] <= 0, line
        # A call that only pretends to fail leaves no message in libpq.
        assert mode == 2 or line["code"] == "DONE" or line["message"], line
    assert sum(line["code"] == "DONE" for line in lines) < len(lines) / 2
