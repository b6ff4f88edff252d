"""Every way a connect can fail: which class, whether trying again helps, within which limit."""

import json
import os
import subprocess
import sys
import time

import pytest

from cycle import support
from fault import sanitizers, servers, worlds
from fault import secured as secured_server
from pg import bulk, qret

HERE = os.path.dirname(os.path.abspath(__file__))
MARGIN = 2.0
SECRET = secured_server.PASSWORD


def fail(dsn, **options):
    """(code, message, hint, sqlstate, retryable, seconds) of a cycle that cannot connect."""
    before = worlds.descriptors()
    with qret.Context(dsn, **options) as context:
        started = time.monotonic()
        code, report = context.try_cycle()
        took = time.monotonic() - started
        assert report["outcome"] == code < 0
        assert context.events("cycle_error")
        assert not [line for line in context.logs if SECRET in line.text]
        assert SECRET not in context.message + context.hint
        found = code, context.message, context.hint, context.sqlstate, context.retryable, took
    assert support.eventually(lambda: worlds.descriptors() <= before)
    return found


# SQLSTATE -> whether it makes sense to try again without anybody mending anything.
REFUSALS = {
    "28P01": False,  # wrong password
    "28000": False,  # no entry in pg_hba.conf, or no such role
    "3D000": False,  # no such database
    "42501": False,  # no CONNECT privilege
    "0A000": False,  # protocol not supported
    "08P01": False,  # a pooler that does not take a startup parameter
    "53300": True,  # too many connections
    "57P03": True,  # starting up, or shutting down
    "57P01": True,
    "08006": True,
    "08004": True,
    "XX000": True,
    "58030": True,
}


@pytest.mark.parametrize("sqlstate", REFUSALS)
def test_refused_connect_is_classed(sqlstate):
    with servers.Refuser(sqlstate, "go away") as server:
        code, message, _, state, retryable, _ = fail(servers.conninfo(server.port))
    assert (code, state, retryable) == (qret.ERR_CONNECTION, sqlstate, REFUSALS[sqlstate])
    assert message == "go away"


def test_refused_in_another_language():
    """The SQLSTATE is read, not the words around it."""
    with servers.Refuser("28P01", "Passwort-Authentifizierung fehlgeschlagen:  oje") as server:
        code, _, hint, state, retryable, _ = fail(servers.conninfo(server.port))
    assert (code, state, retryable) == (qret.ERR_CONNECTION, "28P01", False)
    assert "password" in hint


def test_nobody_listens():
    code, message, _, _, retryable, took = fail(servers.conninfo(servers.closed_port()))
    assert code == qret.ERR_CONNECTION and retryable and took < MARGIN
    assert "refused" in message


def test_no_such_socket():
    code, _, _, _, retryable, _ = fail("host=/nonexistent/folder dbname=postgres")
    assert code == qret.ERR_CONNECTION and retryable


def test_deaf_host_costs_the_connect_limit():
    with servers.deaf() as port:
        code, _, hint, _, retryable, took = fail(servers.conninfo(port), connect_timeout_ms=400)
    assert code == qret.ERR_TIMEOUT and retryable
    assert "connect_timeout_ms" in hint
    assert 0.35 < took < 0.4 + MARGIN


def test_deaf_first_host_and_a_good_second(db, proxy):
    """The limit is each host's own: libpq by itself would sit on the first for ever."""
    bulk.backlog(db, 1, 3)
    with servers.deaf() as port:
        dsn = servers.conninfo([port, proxy.port], dbname=db.name)
        with qret.Context(dsn, connect_timeout_ms=400) as context:
            started = time.monotonic()
            assert context.cycle()["segments_deleted"] == 3
            assert 0.35 < time.monotonic() - started < 0.4 + MARGIN


def test_closed_first_host_and_a_good_second(db, proxy):
    dsn = servers.conninfo([servers.closed_port(), proxy.port], dbname=db.name)
    with qret.Context(dsn) as context:
        context.cycle()


def test_every_host_deaf_costs_one_limit_each():
    with servers.deaf() as first, servers.deaf() as second:
        dsn = servers.conninfo([first, second])
        code, _, _, _, _, took = fail(dsn, connect_timeout_ms=300)
    assert code == qret.ERR_TIMEOUT
    assert 0.55 < took < 0.6 + MARGIN


def test_port_list_with_one_port_serves_every_host():
    with servers.deaf() as port:
        dsn = servers.conninfo(port, host="127.0.0.1,127.0.0.2", hostaddr="127.0.0.1,127.0.0.2")
        code, *_, took = fail(dsn, connect_timeout_ms=300)
    assert code == qret.ERR_CONNECTION  # the second has nobody on that port
    assert took > 0.25


def test_wrong_password_is_not_retryable(secured):
    dsn = secured.tcp_dsn("postgres", user="keyholder", password=SECRET + "x")
    code, message, hint, state, retryable, _ = fail(dsn)
    assert (code, state, retryable) == (qret.ERR_CONNECTION, "28P01", False)
    assert "keyholder" in message and "password" in hint


def test_right_password(secured, secured_db):
    dsn = secured.tcp_dsn(secured_db.name, user="keyholder", password=SECRET)
    with qret.Context(dsn) as context:
        context.cycle()


def test_no_password_given_is_not_retryable(secured):
    code, message, hint, _, retryable, _ = fail(secured.tcp_dsn("postgres", user="keyholder"))
    assert code == qret.ERR_CONNECTION and not retryable
    assert "password" in message and hint


@pytest.mark.parametrize(
    "words, sqlstate",
    [
        ({"user": "outcast"}, "28000"),
        ({"user": "nobody-there"}, "28000"),
        ({"dbname": "not-there"}, "3D000"),
    ],
)
def test_real_refusals_that_somebody_must_mend(secured, words, sqlstate):
    code, _, _, state, retryable, _ = fail(secured.tcp_dsn(**{"dbname": "postgres", **words}))
    assert (code, state, retryable) == (qret.ERR_CONNECTION, sqlstate, False)


def test_connection_limit_is_retryable(secured):
    code, _, _, state, retryable, _ = fail(secured.tcp_dsn("postgres", user="lonely"))
    assert (code, state, retryable) == (qret.ERR_CONNECTION, "53300", True)


def test_tls_wanted_from_a_server_without(proxy):
    dsn = proxy.dsn("postgres", sslmode="require")
    code, message, *_ = fail(dsn)
    assert code == qret.ERR_CONNECTION
    assert "SSL" in message


def test_tls_session(secured, secured_db):
    bulk.backlog(secured_db, 2, 3)
    with qret.Context(secured.tcp_dsn(secured_db.name, sslmode="require")) as context:
        context.begin()
        encrypted = False
        while (code := context.process()) in (qret.MORE, qret.WAIT):
            encrypted = encrypted or secured_db.one(
                "SELECT bool_or(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)"
                " WHERE application_name = 'libqretention'"
            )
            if code == qret.WAIT:
                context.wait()
        assert code == qret.DONE and encrypted
        assert context.report()["segments_deleted"] == 6


def test_hosts_own_timeouts_are_kept(db, proxy):
    """keepalives and user timeout of the conninfo win over those that idle_limit_ms would set."""
    dsn = proxy.dsn(db.name, keepalives_idle=77, tcp_user_timeout=123_000, connect_timeout=9)
    with qret.Context(dsn) as context:
        context.cycle()


def test_options_of_the_conninfo_reach_the_server(db, proxy):
    with qret.Context(proxy.dsn(db.name, options="-c work_mem=7MB")) as context:
        context.cycle()


def test_resolver_that_hangs(db, proxy, tmp_path):
    """B31: the call sits in libpq's look-up, alone: stop returns, others work, no lock is held.

    An address in hostaddr is never looked up, whatever the name beside it.
    """
    bulk.backlog(db, 1, 3)
    hook = sanitizers.interposer(tmp_path, "resolver")
    by_name = f"host=nowhere.invalid port={proxy.port} dbname={db.name} user=postgres"
    by_address = f"{by_name} hostaddr=127.0.0.1 sslmode=disable gssencmode=disable"
    command = [sys.executable, os.path.join(HERE, "resolver_host.py"), hook, by_name, by_address]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=60,
        env=dict(os.environ, LD_PRELOAD=hook),
        check=False,
    )
    assert done.returncode == 0 and done.stderr == "", done.stderr
    seen = json.loads(done.stdout)
    assert seen.pop("stop_seconds") < 2
    assert seen == {
        "hangs": True,
        "other": "DONE",
        "deleted": 3,
        "still_hangs": True,
        "stuck": "ERR_CONNECTION",  # the look-up failed in the end, and an error goes before a stop
        "mended": "DONE",
    }


PASSFILE_HOST = """
import sys
sys.path.insert(0, sys.argv[1])
from pg import qret
try:
    with qret.Context(sys.argv[2]) as context:
        context.try_cycle()
        print("tried")
except qret.Failure as failure:
    print(qret.types.name_of(failure.code))
"""


def test_password_file_that_libpq_would_complain_about(secured, tmp_path):
    """Refused before libpq can write to stderr about it."""
    path = tmp_path / "pgpass"
    path.write_text("*:*:*:*:" + SECRET + "\n", encoding="ascii")
    path.chmod(0o644)
    tests = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    dsn = secured.tcp_dsn("postgres", user="keyholder", passfile=path)
    done = subprocess.run(
        [sys.executable, "-c", PASSFILE_HOST, tests, dsn],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("ERR_OPTION\n", "")
