"""The demonstration: it runs to its end, reads well, tells the truth, and leaves nothing behind."""

import glob
import os
import re
import signal
import subprocess
import tempfile

import pytest

from hosts import programs

DEMO = os.path.join(programs.ROOT, "examples", "demo.sh")

pytestmark = pytest.mark.slow


@pytest.fixture(name="folder")
def _folder():
    """Where the demonstration works; what is left in it, or runs from it, fails the test."""
    with tempfile.TemporaryDirectory(prefix="qret-", dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        yield folder
        assert os.listdir(folder) == []
        assert not processes_of(folder)


def processes_of(folder):
    """Command lines that name the folder."""
    found = []
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(path, "rb") as source:
                line = source.read().replace(b"\0", b" ").decode("utf-8", "replace")
        except OSError:
            continue  # it has ended meanwhile
        if folder in line:
            found.append(line)
    return found


def start(folder, *args, **extra):
    return subprocess.Popen(  # pylint: disable=consider-using-with
        ["sh", DEMO, *args],
        env=programs.environment(
            TMPDIR=folder, QRETENTION_BUILD=os.path.abspath(programs.BUILD), **extra
        ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # A shell cannot trap what its parent ignores, as one in the background does.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def run(folder, *args, **extra):
    process = start(folder, *args, **extra)
    out, err = process.communicate(timeout=170)
    return programs.Result(process.returncode, out, err)


def read_until(process, title):
    for line in process.stdout:
        if line.startswith(title):
            return
    pytest.fail("the demonstration ended early: " + process.stderr.read())


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


def test_private_server(folder):
    """Whatever the person's environment says of other servers and other hosts."""
    steering = {"PGHOSTADDR": "192.0.2.1", "PGCHANNELBINDING": "require"}
    check_story(run(folder, RETENTION_BATCH_SIZE="lots", **steering))


def test_on_a_server_of_the_users(empty_db, folder):
    empty_db.sql("CREATE SCHEMA queen")
    empty_db.sql("CREATE TABLE queen.mine AS SELECT 1 AS x")
    check_story(run(folder, "--dsn", empty_db.dsn))
    schemas = empty_db.sql("SELECT nspname FROM pg_namespace WHERE nspname ~ '^(q|outbox)'")
    assert schemas == [("queen",)]
    relations = "SELECT relname FROM pg_class WHERE relnamespace = 'queen'::regnamespace"
    assert empty_db.sql(relations) == [("mine",)]


def test_a_schema_of_somebody_else_is_not_touched(empty_db, folder):
    empty_db.sql("CREATE SCHEMA qretention_demo_log")
    result = run(folder, "--dsn", empty_db.dsn)
    assert result.code == 1
    assert "qretention_demo_log" in result.err
    left = "SELECT count(*) FROM pg_namespace WHERE nspname = 'qretention_demo_log'"
    assert empty_db.one(left) == 1


def test_a_second_one_in_the_same_database_keeps_off(empty_db, folder):
    """The schemas of one that runs are no leftovers."""
    process = start(folder, "--dsn", empty_db.dsn)
    read_until(process, "A broker")
    second = run(folder, "--dsn", empty_db.dsn)
    assert second.code == 1 and "another demonstration" in second.err, second
    schemas = "SELECT count(*) FROM pg_namespace WHERE nspname ~ '^qretention_demo'"
    assert empty_db.one(schemas) == 4
    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert empty_db.one(schemas) == 0
    assert empty_db.one("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'") == 0


def test_interrupted_it_cleans_up(folder):
    process = start(folder)
    read_until(process, "One cycle")
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "cleaning up" in err


def test_a_reader_that_goes_away_leaves_nothing_behind(folder):
    process = start(folder)
    read_until(process, "A broker")
    process.stdout.close()
    process.stderr.close()
    assert process.wait(60) == 141


def test_wrong_arguments(folder):
    assert run(folder, "--colour").code == 1
    assert run(folder, "--help").out.startswith("usage: sh examples/demo.sh ")
