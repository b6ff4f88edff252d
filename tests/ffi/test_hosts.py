"""A whole host in each language: it sweeps, hears the callbacks, and is stopped in three ways."""

import os
import signal
import time

import pytest

from abi import toolchain
from ffi import hosts
from hosts.programs import fill, wait_for


@pytest.fixture(params=hosts.LANGUAGES)
def host(request, prefix):
    return hosts.Host(request.param, prefix)


def test_host_sweeps_and_hears_the_callbacks(db, host):
    fill(db, segments=20)
    ended = host(db.dsn, 2, 0, "interval_ms=50")
    assert ended.code == 0, ended
    assert [cycle["segments"] for cycle in ended.cycles] == [20, 0]
    assert all(cycle["size"] == 144 and cycle["outcome"] == 0 for cycle in ended.cycles)
    assert ended.cycles[0]["messages"] == 200
    assert ended.end["cycles"] == 2 and ended.end["stopped"] == 0
    assert ended.end["logs"] == 1 and "event=swept" in ended.err, ended
    assert ended.end["metrics"] > 40, "each cycle brings every counter and gauge"
    assert db.one("SELECT count(*) FROM queen.log_segments") == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_host_ends_on_a_signal_while_it_sleeps(db, host, number):
    process = host.start(db.dsn, 0, 0, "interval_ms=600000")
    assert process.stdout.readline().startswith("cycle outcome=0"), host.finish(process)
    time.sleep(0.2)  # now it sleeps for ten minutes
    process.send_signal(number)
    ended = host.finish(process, 20)
    assert ended.code == 0, ended
    assert ended.end["stopped"] == 1


def preloaded(folder, name):
    """A library of ours that a host is started with, from NAME.c beside this file."""
    library = folder / f"{name}.so"
    source = os.path.join(os.path.dirname(__file__), f"{name}.c")
    toolchain.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"])
    return str(library)


@pytest.fixture(scope="module")
def signal_before_poll(tmp_path_factory):
    return preloaded(tmp_path_factory.mktemp("preload"), "signal_before_poll")


@pytest.fixture(scope="module")
def slow_begin(tmp_path_factory):
    return preloaded(tmp_path_factory.mktemp("preload"), "slow_begin")


def test_host_hears_a_signal_that_comes_just_before_it_sleeps(db, host, signal_before_poll):
    ended = host(db.dsn, 0, 0, "interval_ms=600000", LD_PRELOAD=signal_before_poll)
    assert ended.code == 0, ended
    assert ended.end["stopped"] == 1 and ended.end["cycles"] == 1


def drained_slowly(db):
    """A backlog that takes a minute: 3000 segments at 50 a second."""
    fill(db, segments=3000)
    return "max_rows_per_second=50", "batch_size=10", "interval_ms=50"


def test_host_ends_on_a_signal_in_mid_cycle(db, host):
    process = host.start(db.dsn, 0, 0, *drained_slowly(db))
    wait_for(lambda: db.one("SELECT count(*) FROM queen.log_segments") < 3000, 30)
    process.send_signal(signal.SIGTERM)
    ended = host.finish(process, 20)
    assert ended.code == 0, ended
    assert ended.cycles[-1]["outcome"] == 4 and ended.end["stopped"] == 1
    left = db.one("SELECT count(*) FROM queen.log_segments")
    assert left == 3000 - ended.cycles[-1]["segments"] > 0


def test_host_is_stopped_by_another_thread(db, host):
    ended = host(db.dsn, 0, 1500, *drained_slowly(db))
    assert ended.code == 0, ended
    assert ended.cycles[-1]["outcome"] == 4 and ended.end == dict(ended.end, cycles=0, stopped=1)
    left = db.one("SELECT count(*) FROM queen.log_segments")
    assert left == 3000 - ended.cycles[-1]["segments"] > 0


def test_host_stopped_before_its_first_cycle_ends_well(db, host, slow_begin):
    """There is no cycle to tell of then, and none is told."""
    fill(db, segments=5)
    ended = host(db.dsn, 0, 300, LD_PRELOAD=slow_begin)
    assert ended.code == 0, ended
    assert ended.cycles == [] and ended.err == "", ended
    assert ended.end == dict(ended.end, cycles=0, stopped=1)
    assert db.one("SELECT count(*) FROM queen.log_segments") == 5


@pytest.mark.parametrize("words", [["many"], [1, 0, "interval_ms"]])
def test_host_refuses_what_it_does_not_understand(host, words):
    ended = host("host=/nowhere", *words)
    assert ended.code in (1, 2) and ended.out == "", ended
    assert ended.err.startswith("error: ") and len(ended.err.splitlines()) == 1, ended


def test_host_says_an_error_once(empty_db, host):
    """The library's log record, and one line of the host's own."""
    ended = host(empty_db.dsn, 1)
    assert [line.split()[0] for line in ended.err.splitlines()] == ["event=cycle_error", "error:"]


def test_host_rests_while_a_stop_waits_for_a_step(db, host):
    """The signal is heard once: until the step has come back, there is nothing to do but sleep."""
    fill(db, segments=20)
    db.sql(
        "CREATE FUNCTION queen.dawdle() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN PERFORM pg_sleep(2); RETURN NULL; END'"
    )
    db.sql(
        "CREATE TRIGGER dawdle AFTER DELETE ON queen.log_segments"
        " FOR EACH STATEMENT EXECUTE FUNCTION queen.dawdle()"
    )
    process = host.start(db.dsn, 0, 0)
    sleeping = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
    wait_for(lambda: db.one(sleeping) == 1)
    process.send_signal(signal.SIGTERM)
    time.sleep(0.3)
    before = processor_time(process.pid)
    time.sleep(0.8)
    spent = processor_time(process.pid) - before
    ended = host.finish(process, 20)
    assert ended.code == 0 and ended.cycles[-1]["outcome"] == 4, ended
    assert spent < 0.3, f"{spent} s of processor time in 0.8 s of waiting"


def processor_time(pid):
    """Seconds of processor time that a process has used, its threads' included."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_host_reads_options_from_the_environment(db, host):
    ended = host(db.dsn, 1, RETENTION_BATCH_SIZE="lots")
    assert ended.code != 0
    assert "RETENTION_BATCH_SIZE" in ended.err, ended


def test_host_gives_up_where_nothing_is_installed(empty_db, host):
    ended = host(empty_db.dsn, 1)
    assert ended.code == 1, ended
    assert "log_partitions" in ended.err and ended.end is None


@pytest.mark.parametrize("language", hosts.LANGUAGES)
def test_host_is_described_in_the_readme(language):
    with open(os.path.join(toolchain.ROOT, "README.md"), encoding="utf-8") as file:
        assert f"examples/{language}/" in file.read()
