"""The driver's outbox commands: prune, record, quiet-receivers."""

import pytest


def add(db, count=1, age="100 days", policy="", window=None, statuses=("succeeded",)):
    for _ in range(count):
        event = db.one(
            "INSERT INTO outbox.event (name, recorded_at, delete_when, retention_seconds)"
            " VALUES ('e', now() - %s::interval, %s, %s) RETURNING id",
            age,
            policy,
            window,
        )
        for number, status in enumerate(statuses):
            db.sql(
                "INSERT INTO outbox.delivery (event_id, receiver_key, status, succeeded_at)"
                " VALUES (%s, %s, %s, CASE WHEN %s = 'succeeded' THEN now() - interval '9 days' END)",
                event,
                f"receiver-{number}",
                status,
                status,
            )


def events(db):
    return db.one("SELECT count(*) FROM outbox.event")


def test_prune_prints_each_arm(event_db, qretention):
    add(event_db, 2, "1 hour", "succeeded")
    add(event_db, 3, "1 hour", "settled", statuses=("dead",))
    add(event_db, 4, "2 hours", window=3600)
    add(event_db, 5)
    result = qretention("prune")
    assert result.code == 0, result
    counts = {line[2:17].strip(): line.split()[-7:] and line[17:29].strip() for line in result.lines[1:]}
    assert counts == {"succeeded": "2", "settled": "3", "own window": "4", "default window": "5"}
    assert "14 events, 14 deliveries deleted" in result.lines[0]


def test_prune_json(event_db, qretention):
    add(event_db, 2, "1 hour", "succeeded", statuses=("succeeded", "cancelled"))
    row = qretention("prune", "--json").object
    assert (row["events_succeeded"], row["deliveries_deleted"]) == (2, 4)
    assert (row["command"], row["outcome"]) == ("prune", "done")


def test_prune_days_replaces_the_default_window_alone(event_db, qretention):
    add(event_db, 1, "10 days")
    add(event_db, 1, "10 days", window=86400 * 30)
    result = qretention("prune", "--days", "5", "--json")
    assert result.object["events_default_window"] == 1, result
    assert events(event_db) == 1


def test_prune_refuses_a_negative_window(event_db, qretention):
    add(event_db)
    result = qretention("prune", "--days", "-1")
    assert result.code == 16, result
    assert "event_retention_days" in result.err
    assert events(event_db) == 1


def test_prune_limit_says_that_work_is_left(event_db, qretention):
    add(event_db, 10)
    result = qretention("prune", "--limit", "4", "--batch-rows", "4", "--json")
    assert result.code == 8, result
    assert result.object["outcome"] == "budget"
    assert events(event_db) == 6


def test_prune_ignores_that_the_relay_does_not_prune(event_db, qretention):
    add(event_db)
    assert qretention("prune", env={"RELAY_PRUNE": "false"}).code == 0
    assert events(event_db) == 0


def test_prune_runs_beside_a_leader(event_db, qretention):
    add(event_db)
    leader = event_db.connect()
    with leader.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(737001)")
    assert qretention("prune").code == 0
    assert events(event_db) == 0


def test_record_and_read_back(event_db, qretention):
    result = qretention(
        "record", "order-placed", "--payload", '{"total": 3}', "--receiver", "billing",
        "--receiver", 'a "b\\c', "--window", "600", "--dedupe-key", "k", "--json",
    )
    assert result.code == 0, result
    row = event_db.sql(
        "SELECT name, payload->>'total', retention_seconds, dedupe_key FROM outbox.event"
        " WHERE id = %s", result.object["id"],
    )
    assert row == [("order-placed", "3", 600, "k")]
    receivers = event_db.sql("SELECT receiver_key FROM outbox.delivery ORDER BY 1")
    assert receivers == [('a "b\\c',), ("billing",)]


def test_record_suppressed_owes_nothing(event_db, qretention):
    result = qretention("record", "e", "-r", "billing", "--suppress", "migration")
    assert result.code == 0, result
    assert event_db.one("SELECT count(*) FROM outbox.delivery") == 0


@pytest.mark.parametrize(
    "extra",
    [["--window", "0"], ["--delete-when", "never"], ["--payload", "{"],
     ["--delete-when", "settled", "--dedupe-key", "k"]],
)
def test_record_refuses_with_the_servers_words(event_db, qretention, extra):
    result = qretention("record", "e", *extra, "--json")
    assert result.code == 12, result
    assert result.object["error"]["message"] in " ".join(result.err.split())
    assert events(event_db) == 0


def test_record_needs_an_installed_outbox(empty_db, qretention):
    result = qretention("record", "e", "--json")
    assert result.code == 20, result
    assert "install event" in result.object["error"]["hint"]


def test_record_needs_a_name(qretention):
    assert qretention("record").code == 2


def test_quiet_receivers_remembers_what_was_pruned(event_db, qretention):
    add(event_db)
    add(event_db, age="1 hour", statuses=("succeeded", "pending"))
    assert qretention("prune").code == 0
    result = qretention("quiet-receivers", "--json")
    assert result.code == 0, result
    quiet = {row["receiver"]: row["last_success"] for row in result.object["receivers"]}
    assert set(quiet) == {"receiver-0", "receiver-1"}
    assert quiet["receiver-1"] is None and quiet["receiver-0"].endswith("Z")


def test_quiet_receivers_text(event_db, qretention):
    add(event_db, statuses=("succeeded", "pending"))
    result = qretention("quiet-receivers", "--older-than", str(86400 * 30))
    assert result.lines[1].split() == ["receiver-1", "never"], result
    assert result.lines[-1] == "1 quiet receiver"
