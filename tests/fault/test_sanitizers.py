"""B71: the same faults under the sanitizers; two contexts in threads under ThreadSanitizer."""

import os
import subprocess
import threading
import time

import pytest

from cycle import support
from fault import sanitizers, wire, worlds
from fault.proxy import DOWN, UP, Proxy, socket_of
from fault.replay import Replay
from pg import bulk, qret

STRIDE = int(os.environ.get("QRETENTION_ASAN_STRIDE", "101"))
OPTIONS = {"batch_size": 2, "step_target_ms": 600_000}


@pytest.fixture(scope="module")
def exchange(cluster):
    """A deleting cycle of a real server, as recorded."""
    db = cluster.create_database(("broker", "log"))
    worlds.fill(db)
    with Proxy(socket_of(cluster), record=True) as proxy:
        with qret.Context(proxy.dsn(db.name), **OPTIONS) as context:
            context.cycle()
        assert support.eventually(lambda: not proxy.open_links())
        found = proxy.links[-1].bytes(UP), proxy.links[-1].bytes(DOWN)
    db.drop()
    return found


@pytest.mark.slow
def test_cuts_under_address_sanitizer(exchange, tmp_path):
    """No leak, no overflow, nothing undefined: a context a cut, all in one process."""
    command = sanitizers.host("cuts", "address,undefined", tmp_path)
    environment = dict(
        os.environ,
        ASAN_OPTIONS="detect_leaks=1:exitcode=99:abort_on_error=0",
        UBSAN_OPTIONS="halt_on_error=1:print_stacktrace=1",
    )
    with Replay(*exchange) as replay, subprocess.Popen(
        [*command, replay.dsn()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    ) as process:
        try:
            for direction, data in ((UP, exchange[0]), (DOWN, exchange[1])):
                for offset in range(0, len(data) + 1, STRIDE if direction == UP else STRIDE // 4):
                    replay.fault = ("reset" if offset % 2 else "cut", direction, offset)
                    process.stdin.write("go\n")
                    process.stdin.flush()
                    answer = process.stdout.readline()
                    if not answer:
                        break
                    kind = wire.kind_at(replay.found, direction, offset)
                    wanted = 0 if kind in ("release", "end") else qret.ERR_CONNECTION
                    assert int(answer) == wanted, (kind, offset)
            process.stdin.close()
            errors = process.stderr.read()
            assert process.wait(60) == 0, errors
            assert errors == ""
        finally:
            if process.poll() is None:
                process.kill()


@pytest.mark.alone  # beside others it is stopped before it is connected
def test_threads_under_thread_sanitizer(db, tmp_path):
    """Two contexts, stopped, resumed and busied from two other threads, while there is work."""
    command = sanitizers.host("threads", "thread", tmp_path)
    suppressions = tmp_path / "suppressions"
    suppressions.write_text("called_from_lib:libpq.so.5\n", encoding="ascii")
    environment = dict(
        os.environ, TSAN_OPTIONS=f"exitcode=99:halt_on_error=0:suppressions={suppressions}"
    )
    _, ids = bulk.backlog(db, 10, 5)
    over = threading.Event()

    def push():
        while not over.is_set():
            bulk.segments(db, ids, 1, 3600)
            time.sleep(0.05)

    pusher = threading.Thread(target=push)
    pusher.start()
    try:
        done = subprocess.run(
            [*command, db.dsn, "4"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=100,
            env=environment,
            check=False,
        )
    finally:
        over.set()
        pusher.join()
    assert done.returncode == 0 and "WARNING" not in done.stderr, done.stderr[-5000:]
    cycles, good, errors = (int(word) for word in done.stdout.split())
    assert errors == 0, done.stderr
    assert cycles > 10 and good > 2
