"""E8: recording an event with what is owed on it; and who has been quiet."""

from datetime import timedelta

import psycopg2
import pytest

from event.outbox import DAY, WINDOW


def record(own, **arguments):
    names = ", ".join(f"p_{name} => %s" for name in arguments)
    return own.one(f"SELECT outbox.record_event_v1({names})", *arguments.values())


def test_E8_event_and_deliveries_are_written(own):
    event = record(
        own,
        name="order_placed",
        payload='{"order": 7}',
        receivers=["mail", "ledger", "mail"],
        targets='{"hook": ["https://a", "https://b"]}',
        max_attempts=3,
    )
    assert own.sql("SELECT id, name, payload, delete_when, retention_seconds FROM {event}") == [
        (event, "order_placed", {"order": 7}, "", None)
    ]
    assert sorted(own.sql("SELECT receiver_key, target, status, max_attempts FROM {delivery}")) == [
        ("hook", "https://a", "pending", 3),
        ("hook", "https://b", "pending", 3),
        ("ledger", "", "pending", 3),
        ("mail", "", "pending", 3),
    ]


def test_E8_a_suppressed_event_is_owed_to_nobody(own):
    record(own, name="e", receivers=["mail"], suppressed_reason="import")
    assert own.deliveries() == 0
    assert own.one("SELECT suppressed_reason FROM {event}") == "import"


def test_E8_belongs_to_the_callers_transaction(own):
    with own.db.connect(autocommit=False).cursor() as cursor:
        cursor.execute("SELECT outbox.record_event_v1('e', '{}', '{mail}')")
        cursor.connection.rollback()
    assert own.events() == set()


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"name": ""}, "needs a name"),
        ({"name": None}, "needs a name"),
        ({"name": " \t\n"}, "needs a name"),
        ({"retention_seconds": 0}, "window of 0 seconds"),
        ({"retention_seconds": -7}, "window of -7 seconds"),
        ({"retention_seconds": 2147483648}, "window of 2147483648 seconds"),
        ({"delete_when": "someday"}, "no policy"),
        ({"delete_when": "settled", "retention_seconds": 60}, "exclude each other"),
        ({"delete_when": "settled", "dedupe_key": "k"}, "dedupe key protects nothing"),
        ({"delete_when": "succeeded", "dedupe_key": "k"}, "dedupe key protects nothing"),
        ({"max_attempts": 0}, "attempts deliver nothing"),
        ({"receivers": ["mail", None]}, "without a key"),
        ({"receivers": [""]}, "without a key"),
        ({"receivers": [["mail"], ["ledger"]]}, "in 2 dimensions"),
        ({"targets": '{"hook": ["a"], "": ["b"]}'}, "without a key"),
        ({"targets": '{"hook": ["a", null]}'}, "target that is null"),
        ({"targets": "[]"}, "name no receiver"),
        ({"targets": '{"hook": "https://a"}'}, "name no receiver"),
    ],
)
def test_E8_what_does_not_go_together_is_refused(own, arguments, message):
    with pytest.raises(psycopg2.errors.InvalidParameterValue, match=message) as refused:
        record(own, **{"name": "e", **arguments})
    assert refused.value.diag.message_hint
    assert own.events() == set()


def test_E8_a_name_is_a_name_however_strings_are_read(own):
    own.sql("SET standard_conforming_strings = off")
    record(own, name="e")
    with pytest.raises(psycopg2.errors.InvalidParameterValue, match="needs a name"):
        record(own, name=" \t\n\r")


@pytest.mark.parametrize("window", [1, 2147483647])
def test_E8_the_range_of_a_window(own, window):
    record(own, name="e", retention_seconds=window, dedupe_key="k")
    assert own.one("SELECT retention_seconds FROM {event}") == window


def test_E8_a_dedupe_key_holds_while_the_row_exists(own):
    first = record(own, name="e", dedupe_key="k", retention_seconds=60)
    with pytest.raises(psycopg2.errors.UniqueViolation):
        record(own, name="e", dedupe_key="k")
    assert own.pruned(now=own.now + timedelta(hours=1)) == {first}
    record(own, name="e", dedupe_key="k")


def test_E8_table_checks(own):
    with pytest.raises(psycopg2.errors.CheckViolation):
        own.event(window=0)
    with pytest.raises(psycopg2.errors.CheckViolation):
        own.event(window=60, policy="settled")


def test_E8_two_targets_without_digest(own):
    event = own.event()
    for target in ("a", "b"):
        own.sql(
            "INSERT INTO {delivery} (event_id, receiver_key, target) VALUES (%s, 'hook', %s)",
            event,
            target,
        )
    with pytest.raises(psycopg2.errors.UniqueViolation):
        own.sql(
            "INSERT INTO {delivery} (event_id, receiver_key, target) VALUES (%s, 'hook', 'a')",
            event,
        )


def test_E3_quiet_receivers(outbox):
    day = timedelta(days=1)
    live = outbox.event(age=0)
    outbox.delivery(live, "succeeded", "busy", outbox.now)
    outbox.delivery(live, "pending", "reopened", outbox.now - day / 2)
    outbox.delivery(live, "dead", "never")
    outbox.delivery(live, "pending", "slow", outbox.now - 8 * day)
    gone = outbox.event(age=WINDOW + DAY)
    outbox.delivery(gone, "succeeded", "slow", outbox.now - 9 * day)
    outbox.delivery(gone, "succeeded", "past", outbox.now - 95 * day)
    outbox.prune()
    quiet = outbox.sql("SELECT * FROM outbox.quiet_receivers_v1(%s)", 7 * DAY)
    assert quiet == [
        ("never", None),
        ("past", outbox.now - 95 * day),
        ("slow", outbox.now - 8 * day),
    ]


@pytest.mark.parametrize("moment", ["infinity", "-infinity", "290000-01-01"])
def test_E3_a_success_beyond_all_dates_hides_nobody(outbox, moment):
    event = outbox.event()
    outbox.delivery(event, "succeeded", "never", moment)
    outbox.delivery(event, "succeeded", "busy", outbox.now)
    assert outbox.sql("SELECT * FROM outbox.quiet_receivers_v1(%s)", DAY) == [("never", None)]


def test_E3_quiet_receivers_odd_questions(own):
    own.delivery(own.event(), "dead", "never")
    own.delivery(own.event(), "succeeded", "old", "1980-01-01")
    assert own.sql("SELECT * FROM outbox.quiet_receivers_v1(NULL)") == []
    assert [row[0] for row in own.sql("SELECT * FROM outbox.quiet_receivers_v1(0)")] == [
        "never",
        "old",
    ]
    longest = own.sql("SELECT * FROM outbox.quiet_receivers_v1(9223372036854775807)")
    assert longest == [("never", None)]
    with pytest.raises(psycopg2.errors.InvalidParameterValue):
        own.sql("SELECT * FROM outbox.quiet_receivers_v1(-1)")
