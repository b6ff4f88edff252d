"""The demonstration: it runs to its end, reads well, tells the truth, and leaves nothing behind."""

import glob
import os
import re
import signal
import subprocess
import time

import pytest

from hosts import programs

DEMO = os.path.join(programs.ROOT, "examples", "demo.sh")
FOLDERS = "/tmp/qretention-demo.*"

pytestmark = [pytest.mark.slow, pytest.mark.alone]


def run(*args):
    done = subprocess.run(
        ["sh", DEMO, *args], env=programs.environment(), stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=170, check=False,
    )
    return programs.Result(done.returncode, done.stdout, done.stderr)


def left_over(before):
    """Folders, and processes that name one in their command line."""
    found = set(glob.glob(FOLDERS)) - before
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(path, "rb") as source:
                found.update(re.findall(rb"/tmp/qretention-demo\.\w+", source.read()))
        except OSError:
            continue  # it has ended meanwhile
    return found


def check_story(result):
    assert result.code == 0, result
    assert result.err == "", result
    assert max(map(len, result.lines)) <= 80
    assert "\033" not in result.out
    queues = dict(re.findall(r"^   (\w+) +(\d+ -> \d+) ", result.out, re.M))
    assert {"orders", "invoices", "signals", "clicks", "archive"} <= set(queues)
    before, after = queues["archive"].split(" -> ")
    assert before == after
    for number, verdict in ((1, "gone"), (2, "kept"), (3, "kept"), (4, "kept"), (5, "kept")):
        assert f"sessions/{number}  {verdict} " in result.out
    for rule in ("retention", "completed_retention", "max_wait_time_eviction"):
        assert re.search(rf"^   {rule} +\d+ +\d+", result.out, re.M)
    assert re.search(r"newsletter, delivered +40 -> 0 ", result.out)
    assert re.search(r"newsletter, a dead letter +3 -> 3 ", result.out)
    assert "push latency in ms" in result.out


def test_private_server_and_nothing_left():
    before = set(glob.glob(FOLDERS))
    check_story(run())
    assert not left_over(before)


def test_on_a_server_of_the_users(empty_db):
    empty_db.sql("CREATE SCHEMA queen")
    empty_db.sql("CREATE TABLE queen.mine AS SELECT 1 AS x")
    check_story(run("--dsn", empty_db.dsn))
    schemas = empty_db.sql("SELECT nspname FROM pg_namespace WHERE nspname ~ '^(q|outbox)'")
    assert schemas == [("queen",)]
    assert empty_db.sql("SELECT relname FROM pg_class WHERE relnamespace = 'queen'::regnamespace") \
        == [("mine",)]


def test_a_schema_of_somebody_else_is_not_touched(empty_db):
    empty_db.sql("CREATE SCHEMA qretention_demo_log")
    result = run("--dsn", empty_db.dsn)
    assert result.code == 1
    assert "qretention_demo_log" in result.err
    assert empty_db.one("SELECT count(*) FROM pg_namespace WHERE nspname = 'qretention_demo_log'") == 1


def test_interrupted_it_cleans_up():
    before = set(glob.glob(FOLDERS))
    process = subprocess.Popen(  # pylint: disable=consider-using-with
        ["sh", DEMO], env=programs.environment(), stdin=subprocess.DEVNULL, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )
    for line in process.stdout:
        if line.startswith("One cycle"):
            break
    time.sleep(0.2)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "cleaning up" in err
    assert not left_over(before)


def test_wrong_arguments():
    assert run("--colour").code == 1
    assert run("--help").out.startswith("usage: sh examples/demo.sh ")
