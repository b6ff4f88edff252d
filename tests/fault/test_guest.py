"""B35, B67, B72: a quiet guest: no output, no signal, no mask, no descriptor, safe under fork."""

import json
import os
import subprocess
import sys
import threading
import time

import pytest

from cycle import support
from fault import servers, worlds
from fault.proxy import UP, Proxy
from pg import bulk, qret

HERE = os.path.dirname(os.path.abspath(__file__))


def watch(conninfo, cycles=3):
    """What manners.py saw of itself. Whatever it wrote besides is an error."""
    done = subprocess.run(
        [sys.executable, os.path.join(HERE, "manners.py"), conninfo, str(cycles)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 0, (done.returncode, done.stderr)
    assert done.stderr == ""
    (line,) = done.stdout.splitlines()
    return json.loads(line)


def test_nothing_is_changed_by_good_cycles(db):
    bulk.backlog(db, 2, 3)
    seen = watch(db.dsn)
    assert set(seen["codes"]) == {"DONE"}
    assert seen["changes"] == [] and seen["descriptors"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("encrypted", [False, True], ids=["plain", "tls"])
def test_server_dies_in_mid_send(secured, secured_db, encrypted):
    """B72: SIGPIPE at its default, the socket closed at many points, in the clear and under TLS."""
    mode = "require" if encrypted else "disable"
    with Proxy(("127.0.0.1", secured.port)) as proxy:
        dsn = proxy.dsn(secured_db.name, sslmode=mode)
        for action in ("cut", "reset"):
            for offset in (0, 8, 300, 2600, 6100, 9000, 11000):
                proxy.fault_next(action, UP, offset)
                seen = watch(dsn, 1)
                assert set(seen["codes"]) <= {"ERR_CONNECTION", "ERR_TIMEOUT", "DONE"}
                assert seen["changes"] == [] and seen["descriptors"] == 0


def test_nothing_is_changed_without_a_server():
    seen = watch(servers.conninfo(servers.closed_port()))
    assert set(seen["codes"]) == {"ERR_CONNECTION"}
    assert seen["changes"] == [] and seen["descriptors"] == 0


def noisy(db, level="WARNING", words="pssst"):
    """Every delete of segments raises a notice."""
    db.sql(
        f"CREATE FUNCTION public.noise() RETURNS trigger LANGUAGE plpgsql AS $$"
        f" BEGIN RAISE {level} '{words}'; RETURN NULL; END $$"
    )
    db.sql(
        "CREATE TRIGGER noise AFTER DELETE ON queen.log_segments"
        " FOR EACH STATEMENT EXECUTE FUNCTION public.noise()"
    )


@pytest.mark.parametrize("level", ["NOTICE", "WARNING"])
def test_notices_go_to_the_log(db, capfd, level):
    """B35: to the callback, with their severity, and not to stderr."""
    bulk.backlog(db, 2, 3)
    noisy(db, level, "pssst \u00e9\nnewline")
    with qret.Context(db.dsn, batch_size=1) as context:
        context.cycle()
        lines = context.events("notice")
        assert lines and all("pssst" in line.text and level in line.text for line in lines)
        assert all("\n" not in line.text for line in lines)
    assert capfd.readouterr() == ("", "")


def test_notices_on_a_borrowed_connection(db, capfd):
    """Its hooks are the host's: nothing is said there at all."""
    bulk.backlog(db, 2, 3)
    noisy(db)
    borrowed = db.connect()
    with qret.Context() as context:
        context.attach(borrowed)
        context.cycle()
        context.detach()
    assert borrowed.notices == []
    assert capfd.readouterr() == ("", "")


def test_notices_while_connecting(cluster, proxy, capfd):
    """A server that complains before it lets us in, as the second host of the conninfo."""
    db = cluster.create_database(("broker", "log"))
    cluster.admin(f"ALTER DATABASE \"{db.name}\" SET log_statement = 'none'")
    name = db.name + "_icu"
    try:
        cluster.admin(
            f"CREATE DATABASE \"{name}\" TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en-US'"
        )
        cluster.admin("UPDATE pg_database SET datcollversion = '0' WHERE datname = %s", name)
        for ports in ([proxy.port], [servers.closed_port(), proxy.port]):
            with qret.Context(servers.conninfo(ports, dbname=name)) as context:
                assert context.try_cycle()[0] == qret.ERR_SCHEMA
                assert any("collation" in line.text for line in context.events("notice"))
        assert capfd.readouterr() == ("", "")
    finally:
        cluster.drop_database(name)
        db.drop()


def test_notices_of_many_installs(db, capfd):
    with qret.Context(db.dsn) as context:
        for _ in range(2):
            context.install("log")
    assert capfd.readouterr() == ("", "")


CALLS = {
    "schema_install": [b"log"],
    "schema_version": [b"log", qret.types.ctypes.c_int32()],
    "worklist_build": [qret.types.ctypes.c_void_p()],
    "step": [qret.PHASE_METRICS_PURGE, None, qret.StepResult()],
    "gate_take": [],
    "gate_release": [],
    "run_cycle": [None],
    "cycle_begin": [],
    "cycle_process": [],
    "wait": [],
    "set_option": [b"batch_size", b"7"],
    "load_env": [],
    "connect": [b""],
    "detach": [None],
    "set_busy": [1],
}


def in_child(work):
    """Runs it in a forked child; its answer."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(writer, json.dumps(work()).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as answer:
        text = answer.read()
    os.waitpid(pid, 0)
    return json.loads(text)


def quiet(proxy, link):
    """How many bytes came from the client, once no more come."""
    before = -1
    while before != len(link.bytes(UP)):
        before = len(link.bytes(UP))
        time.sleep(0.1)
        proxy.settle()
    return before


@pytest.mark.parametrize("moment", ["at rest", "in mid-cycle", "with the gate"])
def test_forked_child_is_told_and_sends_nothing(db, cluster, moment):
    """B67: every call says FORKED, freeing is silent, and the parent goes on as if nothing was."""
    bulk.backlog(db, 5, 4)
    with Proxy(os.path.join(cluster.folder, f".s.PGSQL.{cluster.port}"), record=True) as proxy:
        context = qret.Context(proxy.dsn(db.name), batch_size=2)
        context.schema_version("log")
        if moment == "in mid-cycle":
            context.begin()
            while not context.report()["steps"]:
                if context.process() == qret.WAIT:
                    context.wait()
            while context.process() == qret.MORE:
                pass
        elif moment == "with the gate":
            assert context.gate_take()
        assert support.eventually(lambda: proxy.links)
        (link,) = proxy.links
        before = quiet(proxy, link)

        def child():
            codes = {name: context.call(name, *args) for name, args in CALLS.items()}
            context.stop()
            context.resume()
            context.close()
            return codes

        codes = in_child(child)
        assert set(codes.values()) == {qret.ERR_FORKED}, codes
        assert link.open and len(link.bytes(UP)) == before
        if moment == "in mid-cycle":
            assert support.finish(context) == qret.DONE
        else:
            context.cycle()
        if moment == "with the gate":
            context.gate_release()
        assert bulk.count(db) == 0
        context.close()


def test_fork_under_tls(secured, secured_db):
    """The child's exit does not say goodbye on the parent's TLS session."""
    bulk.backlog(secured_db, 2, 3)
    with qret.Context(secured.tcp_dsn(secured_db.name, sslmode="require")) as context:
        context.schema_version("log")

        def child():
            context.close()
            return True

        assert in_child(child)
        assert context.cycle()["segments_deleted"] == 6


def test_many_contexts_leave_nothing(db):
    before = worlds.descriptors()
    for number in range(30):
        with qret.Context(db.dsn, parallelism=2) as context:
            if number % 3:
                context.cycle()
    assert worlds.descriptors() == before


def test_contexts_in_threads(db):
    """Several contexts at once in one process, each in its own thread, stopped from others."""
    bulk.backlog(db, 20, 5)
    codes = []

    def host():
        with qret.Context(db.dsn, batch_size=2) as context:
            timer = threading.Timer(0.2, context.stop)
            timer.start()
            for _ in range(5):
                codes.append(context.try_cycle()[0])
            timer.join()

    crowd = [threading.Thread(target=host) for _ in range(6)]
    for thread in crowd:
        thread.start()
    for thread in crowd:
        thread.join()
    assert set(codes) <= {qret.DONE, qret.BUSY, qret.STOPPED}
    with qret.Context(db.dsn) as context:
        context.cycle()
    assert bulk.count(db) == 0 and worlds.audited(db) == 100
