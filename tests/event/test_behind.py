"""E1, E7: locks behind an event, on what goes with it or refers to it, and on last successes."""

import contextlib

import psycopg2
import pytest

from event.outbox import DAY, WINDOW
from pg import qret, qret_types

OLD = WINDOW + DAY
BEHIND = {
    "attempt": "SELECT FROM public.attempt WHERE event_id = ANY (%s) FOR UPDATE",
    "audit": "DELETE FROM public.audit WHERE event_id = ANY (%s)",
    "success": "SELECT FROM {success} WHERE receiver_key = ANY (%s::text[]) FOR UPDATE",
}


def run(outbox, rows=5000):
    """The answers of a run, step after step."""
    answers, after = [], None
    while not answers or not answers[-1]["done"]:
        answers.append(outbox.limited("default_window", rows=rows, after=after))
        after = answers[-1]["last"]
    return answers


def total(answers, key):
    return sum(answer[key] for answer in answers)


def fill(outbox, count):
    """Events, oldest first, each with a delivery and a receiver of its own."""
    outbox.sql(
        "INSERT INTO {event} (name, recorded_at, delete_when, suppressed_reason)"
        " SELECT 'e', %s::timestamptz - interval '200 days' + n * interval '1 s', '', ''"
        " FROM generate_series(1, %s) AS n",
        outbox.now, count,
    )
    outbox.sql(
        "INSERT INTO {delivery} (event_id, receiver_key, status, succeeded_at)"
        " SELECT id, id::text, 'succeeded', %s FROM {event}", outbox.now,
    )
    return sorted(outbox.events())


@contextlib.contextmanager
def locked_behind(outbox, held, events):
    """A transaction of a host's that keeps the row behind each of these events."""
    if held == "success":
        outbox.sql(
            "INSERT INTO {success} (receiver_key, last_succeeded_at)"
            " SELECT id::text, '2001-01-01' FROM {event}"
        )
    else:
        outbox.sql(
            f"CREATE TABLE public.{held} (event_id bigint, refers bigint REFERENCES"
            + (" {delivery} ON DELETE CASCADE)" if held == "attempt" else " {event})")
        )
        outbox.sql(f"CREATE INDEX ON public.{held} (refers)")
        outbox.sql(
            f"INSERT INTO public.{held} SELECT event_id, "
            + ("id" if held == "attempt" else "event_id")
            + " FROM {delivery} WHERE event_id = ANY (%s)",
            events,
        )
    host = outbox.db.connect(autocommit=False)
    with host.cursor() as cursor:
        cursor.execute(outbox.named(BEHIND[held]), (events,))
    yield
    host.commit()


@pytest.mark.parametrize("rows", [5000, 7])
@pytest.mark.parametrize("held", BEHIND)
def test_E1_a_lock_behind_an_event_stops_nobody(outbox, held, rows):
    events = fill(outbox, 20)
    kept = [events[0], events[7], events[19]]
    with locked_behind(outbox, held, kept):
        answers = run(outbox, rows)
        assert outbox.events() == set(kept)
        assert (total(answers, "events"), total(answers, "skipped")) == (17, 3)
        assert total(answers, "waits") >= 3 and total(answers, "failed") == 0
        assert outbox.deliveries() == 3
    assert outbox.pruned() == set(kept)


@pytest.mark.parametrize("table", ["{event}", "{delivery}"])
def test_E1_a_table_that_is_locked_is_no_events_fault(outbox, table):
    """As while an index is built on it: nothing is picked apart, and the whole step fails."""
    events = fill(outbox, 20)
    host = outbox.db.connect(autocommit=False)
    with host.cursor() as cursor:
        cursor.execute(outbox.named(f"LOCK TABLE {table} IN SHARE MODE"))
        with pytest.raises(psycopg2.errors.LockNotAvailable):
            outbox.limited("default_window")
        host.rollback()
    assert outbox.pruned() == set(events)


@pytest.fixture
def crowded(own):
    """More events behind which something is locked than a step takes, and one behind them."""
    events = fill(own, 520)
    with locked_behind(own, "audit", events[:-1]):
        yield events[-1]


def test_E1_a_crowd_of_locks_costs_each_step_little(own, crowded):
    answers = run(own)
    assert crowded not in own.events() and len(own.events()) == 519
    assert total(answers, "skipped") == 519 and len(answers) <= 12
    # A part that fails is halved: each that is alone costs about one wait more than itself.
    assert max(answer["waits"] for answer in answers) <= 2 * 64 + 9


def test_E1_a_crowd_of_locks_stops_no_cycle(event_db, own, crowded):
    with qret.Context(event_db.dsn, engines="event", event_prune_interval_ms=0) as library:
        outcome, report = library.try_cycle()
    assert (outcome, report["events_deleted"]) == (qret_types.DONE, 1)
    assert (report["items_locked"], report["items_failed"]) == (519, 0)


def test_E1_a_step_that_has_something_to_commit_waits_little(own):
    events = fill(own, 200)
    with locked_behind(own, "audit", events[::2]):
        answers = run(own)
        assert own.events() == set(events[::2])
        assert all(answer["waits"] <= 20 for answer in answers if answer["events"])


def test_E1_patience_wears_out_within_a_step(own):
    """All a step waits, before what it holds is given back, is less than what finds a deadlock."""
    events = fill(own, 64)
    with locked_behind(own, "audit", events):
        started = own.one("SELECT extract(epoch FROM clock_timestamp())::float8")
        answer = own.limited("default_window")
        took = own.one("SELECT extract(epoch FROM clock_timestamp())::float8") - started
    assert answer["skipped"] == 64
    # Each as long as the first would be 25 seconds.
    assert took < 0.2 * answer["waits"] / 5


def test_E2_a_lock_behind_an_oversize_event_stops_nobody(outbox):
    big = fill(outbox, 1)[0]
    outbox.fan_out(big, 30)
    small = outbox.event("succeeded", age=OLD)
    with locked_behind(outbox, "attempt", [big]):
        answers = run(outbox, rows=10)
        assert (total(answers, "events"), total(answers, "skipped")) == (1, 1)
        assert outbox.events() == {big} and small not in outbox.events()
        assert outbox.deliveries() == 31
    assert outbox.pruned(rows=10) == {big}
