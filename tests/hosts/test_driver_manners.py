"""How the driver behaves towards people, pipes, signals and wrong input."""

import json
import os
import signal
import subprocess

import pytest

from hosts.programs import environment, fill, wait_for

SECRET = "s3cr3t-Pa55"
BACKENDS = (
    "SELECT count(*) FROM pg_stat_activity"
    " WHERE pid <> pg_backend_pid() AND datname = current_database() AND backend_type = 'client backend'"
)


def test_progress_line_on_a_terminal_only(db, qretention):
    for name in range(20):
        fill(db, queue=f"q{name}", segments=40)
    slow = ("cycle", "--set", "max_rows_per_second=1000", "--set", "batch_size=20",
            "--set", "work_list=scan")
    seen = qretention.on_terminal(*slow)
    assert seen.code == 0, seen
    assert " rows gone, " in seen.out and " of " in seen.out
    assert " rows/s" in seen.out and "left" in seen.out
    lines = [part for line in seen.out.split("\n") for part in line.split("\r")]
    assert max(len(part.replace("\033[K", "")) for part in lines) <= 80
    assert "cycle done in " in seen.out.split("\033[K")[-1], "the line is gone at the end"


def test_no_progress_line_in_a_pipe(db, qretention):
    fill(db, segments=600)
    slow = ("cycle", "--set", "max_rows_per_second=1000", "--set", "batch_size=50")
    result = qretention(*slow)
    assert result.code == 0, result
    for text in (result.out, result.err):
        assert "\r" not in text and "\033" not in text and "rows gone" not in text


@pytest.mark.parametrize("flag", ["--quiet", "--json"])
def test_no_progress_line_where_it_is_not_wanted(db, qretention, flag):
    fill(db, segments=600)
    slow = ("cycle", flag, "--set", "max_rows_per_second=1000", "--set", "batch_size=50")
    assert "rows gone" not in qretention.on_terminal(*slow).out


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_run_between_two_batches(db, qretention, number):
    fill(db, segments=4000)
    process = qretention.start("run", "--json", "--set", "batch_size=10",
                               "--set", "max_rows_per_second=500")
    wait_for(lambda: db.one("SELECT count(*) FROM queen.log_segments") < 4000)
    process.send_signal(number)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 0, err
    report = json.loads(out.splitlines()[-1])
    left = db.one("SELECT count(*) FROM queen.log_segments")
    assert report["outcome"] == "stopped"
    assert report["segments_deleted"] == 4000 - left > 0 and left > 0
    assert db.one("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'") == 0


def test_a_signal_ends_cycle_with_its_own_code(db, qretention):
    fill(db, segments=4000)
    process = qretention.start("cycle", "--set", "batch_size=10", "--set", "max_rows_per_second=500")
    wait_for(lambda: db.one("SELECT count(*) FROM queen.log_segments") < 4000)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 4, err
    assert out.startswith("cycle stopped in ")


def test_a_signal_ends_run_while_it_sleeps(db, qretention):
    process = qretention.start("run", "--json", "--set", "interval_ms=600000")
    assert json.loads(process.stdout.readline())["outcome"] == "done"
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=10)
    assert process.returncode == 0


def test_run_outlives_a_lost_connection(db, qretention):
    process = qretention.start("run", "--json", "--set", "interval_ms=50")
    try:
        assert json.loads(process.stdout.readline())["outcome"] == "done"
        db.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
               " WHERE pid <> pg_backend_pid() AND datname = current_database()")
        since = process.stdout.readline()
        for _ in range(40):
            since = process.stdout.readline()
            if json.loads(since)["outcome"] == "done" and db.one(BACKENDS) == 1:
                break
        else:
            pytest.fail(f"no good cycle after the connection was lost: {since}")
    finally:
        process.terminate()
        process.communicate(timeout=10)


def test_run_ends_where_nothing_is_installed(empty_db, qretention):
    result = qretention("run", "--set", "interval_ms=10")
    assert result.code == 20, result
    assert "hint:" in result.err


def test_unreachable_server(qretention, tmp_path):
    result = qretention("cycle", "--json", dsn=f"host={tmp_path} port=5999 dbname=none")
    assert result.code == 17, result
    assert result.object["outcome"] == "connection"
    assert result.object["error"]["retryable"] is True


@pytest.mark.parametrize(
    "dsn",
    ["host=/nowhere password=" + SECRET, "postgresql://app:%s@/none?host=/nowhere" % SECRET,
     "host=/nowhere pasword=" + SECRET, "password='" + SECRET, "postgresql://app:%s@[::1/x" % SECRET],
)
@pytest.mark.parametrize("command", [["cycle"], ["record", "e"], ["version", "-vv", "--json"]])
def test_a_password_is_never_printed(qretention, dsn, command):
    result = qretention(*command, dsn=dsn)
    assert result.code in (16, 17), result
    assert SECRET not in result.out + result.err
    assert result.err


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("dsn", ["postgresql://app:%s@db/app", "host=db password=%s"])
def test_a_connection_string_without_its_option_is_not_repeated(qretention, dsn, before):
    words = [dsn % SECRET, "cycle"]
    result = qretention(*(words if before else reversed(words)))
    assert result.code == 2, result
    assert SECRET not in result.err and "--dsn" in result.err


def test_connection_from_the_environment(db, qretention):
    values = dict(pair.split("=", 1) for pair in db.dsn.split())
    names = {"host": "PGHOST", "port": "PGPORT", "dbname": "PGDATABASE", "user": "PGUSER"}
    env = {names[k]: v.strip("'") for k, v in values.items() if k in names}
    assert qretention("version", dsn=None, env=env).code == 0


@pytest.mark.parametrize(
    "pair, said",
    [("batch_size=0", "batch_size"), ("batch_size=ten", "batch_size"), ("colour=red", "colour"),
     ("gate=maybe", "session")],
)
def test_refused_options_name_themselves(qretention, pair, said):
    result = qretention("options", "--set", pair)
    assert result.code == 16, result
    assert said in result.err


def test_refused_environment(qretention):
    result = qretention("options", env={"RETENTION_BATCH_SIZE": "-5"})
    assert result.code == 16
    assert "RETENTION_BATCH_SIZE" in result.err or "batch_size" in result.err


def test_missing_schema_is_told_with_a_hint(empty_db, qretention):
    result = qretention("cycle", "--json")
    assert result.code == 20, result
    assert result.object["error"]["hint"]


def test_missing_privilege(db, qretention):
    db.sql("CREATE ROLE stranger LOGIN")
    try:
        result = qretention("cycle", dsn=db.dsn.replace("user=postgres", "user=stranger"))
        assert result.code == 21, result
    finally:
        db.sql("DROP ROLE stranger")


def test_a_closed_pipe_is_no_crash_and_no_noise(qretention):
    reader, writer = os.pipe()
    os.close(reader)
    process = qretention.start("options", stdout=writer)
    os.close(writer)
    _, err = process.communicate(timeout=10)
    assert process.returncode == 1
    assert err == ""


def test_a_closed_pipe_ends_run(db, qretention):
    process = qretention.start("run", "--json", "--set", "interval_ms=20")
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(timeout=10) == 1
    process.stderr.close()


@pytest.mark.parametrize("command", ["options", "--help", "version", "step 5", "cycle", "run -n 1"])
def test_a_full_disk_is_reported(db, qretention, command):
    with open("/dev/full", "w", encoding="utf-8") as full:
        process = qretention.start(*command.split(), "-j", stdout=full)
        _, err = process.communicate(timeout=10)
    assert process.returncode == 1
    assert "cannot write" in err


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_do_not_become_the_server_s(empty_db, qretention, closed):
    """The next descriptor takes the number of one that is closed: log lines are no SQL."""
    words = qretention.command(["install", "broker", "log", "event", "-vv"], empty_db.dsn)
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {closed}', "sh", *words],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == (0 if closed in ("<&-", "2>&-") else 1), done
    if closed == ">&-":
        assert "cannot write" in done.stderr
    assert empty_db.one("SELECT count(*) FROM queen.retention_schema") == 2
    assert empty_db.one("SELECT count(*) FROM outbox.retention_schema") == 1


def test_log_lines_by_level(db, qretention):
    fill(db)
    assert qretention("cycle").err == ""
    fill(db, queue="more")
    assert "swept" in qretention("cycle", "-v").err
    assert "idle" in qretention("cycle", "-vv").err
    assert qretention("cycle", "-vv", "-q").err == ""


def test_an_error_is_said_once(empty_db, qretention):
    result = qretention("cycle", "-v")
    assert len([line for line in result.err.splitlines() if line.startswith("qretention: ")]) == 1
    assert "cycle_error" not in result.err


@pytest.mark.parametrize("command", [["cycle"], ["prune"], ["run"], ["version"], ["step", "1"]])
def test_an_error_is_said_to_people_beside_json(empty_db, qretention, command):
    """What reads the objects is often not who looks after the program."""
    dsn = empty_db.dsn.replace("user=postgres", "user=nobody_of_that_name")
    result = qretention(*command, "--json", dsn=dsn)
    assert result.code == 17, result
    message = result.object["error"]["message"]
    assert message and result.err.splitlines()[0] == f"qretention: {message}", result
    assert "cycle_error" not in result.err


def test_an_error_is_one_line_outside_a_terminal(qretention, tmp_path):
    result = qretention("cycle", dsn=f"host={tmp_path}/{'long' * 15} dbname=none")
    assert result.code == 17
    assert len(result.err.splitlines()) == 1 and len(result.err) > 100, result
    assert '"cycl"' in qretention("cycl").err


def test_json_stays_valid_with_odd_names(db, qretention):
    fill(db, queue='a"b\\c\n\t\x01é')
    for command in (["cycle"], ["worklist"], ["options", "--set", 'log_schema=We"ird\\.Schéma']):
        result = qretention(*command, "--json")
        assert result.objects, result


def test_everything_fits_80_columns(db, qretention):
    for name in range(3):
        fill(db, queue=f"q{name}", completed_retention_seconds=86400 * 3)
    fill(db, queue="years", retention_seconds=2147483647, max_wait_time_seconds=2147483600)
    far = fill(db, queue="far")
    db.sql(
        "UPDATE queen.log_partitions SET last_offset = last_offset + 4000000000,"
        " log_start = log_start + 4000000000 WHERE id = %s",
        far,
    )
    db.sql(
        "UPDATE queen.log_segments SET base_offset = base_offset + 4000000000,"
        " end_offset = end_offset + 4000000000 WHERE partition_id = %s",
        far,
    )
    for command in ("options", "worklist", "worklist -s work_list=scan", "version", "step 1", "cycle", "cycle", "run -n 1 -v"):
        result = qretention(*command.split())
        assert max(map(len, result.lines), default=0) <= 80, result

