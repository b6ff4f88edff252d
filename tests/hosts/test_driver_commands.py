"""Each subcommand of the driver does what its help says, in text and in JSON."""

import pytest

from hosts.programs import fill

COMMANDS = (
    "install version options worklist step cycle run prune record quiet-receivers".split()
)


ALL = ("--set", "work_list=scan")


def segments(db):
    return db.one("SELECT count(*) FROM queen.log_segments")


def test_install_log_alone_is_the_default(empty_db, qretention):
    assert qretention("install", "broker").code == 0
    result = qretention("install")
    assert result.code == 0, result
    assert result.out == "log: installed, version 1\n"


def test_install_broker_flag_puts_the_tables_first(empty_db, qretention):
    result = qretention("install", "--broker", "--json")
    assert result.code == 0, result
    assert [(row["part"], row["version_before"], row["version"]) for row in result.objects] == [
        ("broker", 0, 1),
        ("log", 0, 1),
    ]


def test_install_is_safe_to_repeat(empty_db, qretention):
    for _ in range(2):
        assert qretention("install", "event", "log", "broker").code == 0
    assert qretention("install", "log").out == "log: version 1, brought up to date\n"


def test_install_without_the_broker_tables_says_what_to_do(empty_db, qretention):
    result = qretention("install")
    assert result.code == 20, result
    assert "hint:" in result.err


def test_install_event_over_named_tables(empty_db, qretention):
    assert qretention("install", "event").code == 0
    empty_db.sql("CREATE SCHEMA app")
    for ours, theirs in (
        ("event", "occurrence"),
        ("delivery", "shipment"),
        ("receiver_last_success", "success"),
    ):
        empty_db.sql(f"ALTER TABLE outbox.{ours} SET SCHEMA app")
        empty_db.sql(f"ALTER TABLE app.{ours} RENAME TO {theirs}")
    empty_db.sql("DROP SCHEMA outbox CASCADE")
    tables = ("--event-table", "app.occurrence", "--delivery-table", "app.shipment")
    result = qretention("install", *tables, "--success-table", "app.success")
    assert result.code == 0, result
    assert result.out.startswith("event: ")
    assert empty_db.one("SELECT to_regclass('outbox.event')") is None


def test_install_refuses_tables_for_another_part(qretention):
    result = qretention("install", "log", "--django")
    assert result.code == 2
    assert "event" in result.err


def test_install_refuses_an_unknown_part(qretention):
    assert qretention("install", "everything").code == 2


def test_version_names_what_is_installed(db, qretention):
    result = qretention("version")
    assert result.code == 0, result
    assert "log     version 1" in result.out
    assert "event   not installed" in result.out
    parts = qretention("version", "--json").object["parts"]
    assert parts == {"broker": 1, "log": 1, "event": 0}


def test_worklist_shows_ages(db, qretention):
    partition = fill(db, completed_retention_seconds=600)
    result = qretention("worklist", *ALL)
    assert result.code == 0, result
    (row,) = [line for line in result.lines if line.startswith(partition)]
    assert row.split() == [partition, "1", "h", "10", "min", "1", "h", "-"]
    assert result.lines[-1].startswith("1 partition, clock ")


def test_worklist_json_gives_cutoffs_and_a_total(db, qretention):
    partition = fill(db)
    *items, total = qretention("worklist", "--json", *ALL).objects
    assert [item["partition"] for item in items] == [partition]
    assert items[0]["max_wait_cutoff_us"] is None
    assert total["clock_us"] - items[0]["all_cutoff_us"] == 3600 * 1000000
    assert (total["count"], total["outcome"]) == (1, "done")


def test_worklist_limit(db, qretention):
    for name in "abc":
        fill(db, queue=name)
    result = qretention("worklist", "--limit", "2", "--json", *ALL)
    assert result.objects[-1]["count"] == 2, result


def test_worklist_before_the_first_cycle_names_what_is_due(db, qretention):
    """Nobody has looked at the partition yet; that is no reason to leave it out."""
    partition = fill(db)
    assert [row.get("partition") for row in qretention("worklist", "--json").objects] == [
        partition,
        None,
    ]


def test_worklist_after_a_cycle_names_only_what_is_due(db, qretention):
    fill(db)
    assert qretention("cycle").code == 0
    assert qretention("worklist").lines[-1].startswith("0 partitions, clock ")


def test_step_is_one_batch(db, qretention):
    partition = fill(db, segments=20)
    step = ("step", "retention", "--partition", partition, "--set", "batch_size=5", "--json")
    result = qretention(*step)
    assert result.code == 0, result
    row = result.object
    assert (row["rows_deleted"], row["messages_deleted"], row["done"]) == (5, 50, False)
    assert row["watermark"] == 50
    assert segments(db) == 15


def test_step_until_done(db, qretention):
    partition = fill(db, segments=20)
    result = qretention("step", "1", "-p", partition, "--set", "batch_size=5", "--until-done")
    assert result.code == 0, result
    assert segments(db) == 0
    assert result.lines[-1] == "4 steps: 20 rows, 200 messages deleted"


def test_step_every_partition_of_the_list(db, qretention):
    for name in "abc":
        fill(db, queue=name)
    result = qretention("step", "txns-purge", "--json", *ALL)
    assert result.code == 0, result
    assert [row["rows_deleted"] for row in result.objects] == [20, 20, 20]


@pytest.mark.parametrize("phase", ["partition-cleanup", "5"])
def test_step_of_a_phase_without_partitions(db, qretention, phase):
    result = qretention("step", phase, "--json")
    assert result.code == 0, result
    assert result.object["partition"] is None
    assert result.object["rows_deleted"] == 0


@pytest.mark.parametrize(
    "words",
    [[], ["everything"], ["0"], ["7"], ["1", "-p", "no-uuid"], ["4", "-p", "0" * 36]],
)
def test_step_refuses_what_it_does_not_know(db, qretention, words):
    result = qretention("step", *words)
    assert result.code == 2, result
    assert "qretention step --help" in result.err


def test_step_needs_no_gate(db, qretention):
    """So it runs behind a pooler as it is; a lease is nothing that it could hold."""
    fill(db, segments=20)
    result = qretention("step", "1", "--set", "pooler=transaction", *ALL)
    assert result.code == 0, result
    assert segments(db) == 0
    result = qretention("step", "1", "--set", "gate=lease")
    assert result.code == 2 and "gate=none" in result.err, result


def test_step_of_a_partition_that_is_not_there(db, qretention):
    result = qretention("step", "1", "-p", "00000000-0000-0000-0000-000000000000")
    assert result.code == 12, result
    assert "no such partition" in result.err


def test_cycle_deletes_and_says_so(db, qretention):
    fill(db)
    result = qretention("cycle")
    assert result.code == 0, result
    assert result.lines[0].startswith("cycle done in ")
    assert any(line.split() == ["deleted", "20", "segments"] for line in result.lines), result
    assert segments(db) == 0


def test_cycle_with_nothing_due(db, qretention):
    result = qretention("cycle")
    assert result.code == 0, result
    assert result.lines[1] == "  nothing was due"


def test_cycle_json_has_every_count(db, qretention):
    fill(db)
    row = qretention("cycle", "--json").object
    assert (row["outcome"], row["code"]) == ("done", 0)
    assert (row["segments_deleted"], row["messages_deleted"]) == (20, 200)
    assert row["txns_purged"] == 20
    assert row["clock"].endswith("Z")
    assert "error" not in row


def test_cycle_is_busy_while_another_leads(db, qretention):
    fill(db)
    leader = db.connect()
    with leader.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(737001)")
    result = qretention("cycle", "--json")
    assert result.code == 3
    assert result.object["outcome"] == "busy"
    assert segments(db) == 20


def test_run_counts_cycles_and_prints_those_that_deleted(db, qretention):
    fill(db)
    result = qretention("run", "--cycles", "3", "--set", "interval_ms=20")
    assert result.code == 0, result
    (line,) = result.lines
    assert "20 segments" in line and "20 sidecar rows" in line


def test_run_json_prints_every_cycle(db, qretention):
    result = qretention("run", "-n", "3", "--set", "interval_ms=20", "--json")
    assert [row["outcome"] for row in result.objects] == ["done"] * 3


def test_options_lists_values_ranges_and_environment(qretention):
    result = qretention("options", env={"RETENTION_INTERVAL": "750"})
    assert result.code == 0, result
    assert "interval_ms = 750  (default 5000)" in result.out
    assert "environment RETENTION_INTERVAL" in result.out


def test_options_json_and_selection(qretention):
    result = qretention("options", "gate", "engines", "--json", "--set", "gate=none")
    values = {row["name"]: (row["value"], row["default"]) for row in result.objects}
    assert values == {"gate": ("none", "session"), "engines": ("log", "log")}
    assert qretention("options", "no_such_option").code == 2


def test_no_environment(qretention):
    environment = {"RETENTION_INTERVAL": "750"}
    result = qretention("options", "interval_ms", "--json", "--no-environment", env=environment)
    assert result.object["value"] == "5000"


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command(qretention, command):
    result = qretention(command, "--help")
    assert result.code == 0
    assert result.out.startswith(f"usage: qretention {command} ")
    assert "--json" in result.out
    assert max(map(len, result.lines)) <= 80


def test_help_names_commands_and_exit_codes(qretention):
    result = qretention("--help")
    assert result.code == 0
    for command in COMMANDS:
        assert f"\n  {command} " in result.out
    assert "\n  17  cannot connect" in result.out
    assert max(map(len, result.lines)) <= 80


def test_program_version_needs_no_server(qretention):
    assert qretention("--version").out.startswith("qretention 0.")


@pytest.mark.parametrize(
    "words",
    [[], ["no-such-command"], ["cycle", "--no-such"], ["cycle", "word"], ["run", "-n", "x"],
     ["cycle", "--set"], ["cycle", "--set", "value"], ["-x"], ["cycle", "--json=yes"]],
)
def test_wrong_command_lines(qretention, words):
    result = qretention(*words)
    assert result.code == 2, result
    assert result.out == ""
    assert "--help" in result.err


@pytest.mark.parametrize(
    "words, named",
    [
        (["cycl"], "cycl"),
        (["foo", "cycle"], "foo"),
        (["foo", "options"], "foo"),
        (["foo", "--no-such"], "foo"),
        (["cycle", "word"], "word"),
        (["install", "everything"], "everything"),
        (["step", "everything"], "everything"),
        (["step", "1", "-p", "no-uuid"], "no-uuid"),
        (["run", "-n", "many"], "many"),
        (["options", "gate", "no_such"], "no_such"),
        (["options", "--set", "value"], "value"),
    ],
)
def test_wrong_command_lines_name_what_is_wrong(qretention, words, named):
    result = qretention(*words)
    assert result.code == 2, result
    assert f'"{named}"' in result.err, result
    assert result.out == ""


@pytest.mark.parametrize(
    "words",
    [
        ["-jd", "cycle", "options", "gate"],
        ["--dsn", "run", "options", "gate", "-j"],
        ["--set=gate=session", "-j", "options", "gate", "gate"],
        ["-j", "options", "--", "gate"],
        ["-j", "--", "options", "gate"],
    ],
)
def test_command_is_the_first_word_that_is_no_value(qretention, words):
    result = qretention(*words)
    assert result.code == 0, result
    assert (result.object["command"], result.object["name"]) == ("options", "gate")


def test_value_of_a_command_s_own_option_may_come_first(event_db, qretention):
    result = qretention("--receiver", "cycle", "record", "run", "--json")
    assert result.object["command"] == "record", result
    assert event_db.sql("SELECT receiver_key FROM outbox.delivery") == [("cycle",)]
    assert event_db.one("SELECT name FROM outbox.event") == "run"
