"""E1, E3: what commits between two statements of one batch, each at its own worst moment."""

from datetime import timedelta

import psycopg2
import pytest

from event import fire
from event.outbox import DAY, WINDOW

OLD = WINDOW + DAY


class Stopped:
    """A step of the prune that stops before one statement of one of its functions."""

    def __init__(self, outbox, function, statement):
        self.outbox = outbox
        outbox.sql(fire.SCHEMA)
        text = fire.source(outbox, function, halts=(statement,))
        assert "fire.halt" in text, statement
        outbox.db.sql(text)
        self.pruner = fire.Actor(outbox.db.dsn)
        self.gate = fire.Actor(outbox.db.dsn)

    def __enter__(self):
        self.gate.run("SELECT pg_advisory_lock(%s)", fire.GATE)
        return self

    def __exit__(self, *error):
        self.pruner.close()
        self.gate.close()

    def _waits(self, pid):
        return self.outbox.one(
            "SELECT count(*) > 0 FROM pg_locks WHERE pid = %s AND NOT granted", pid
        )

    def start(self, arm, rows=5000):
        self.pruner.send(
            "SELECT outbox.event_prune_limited_v1(%s, %s, %s, %s, NULL, 500)",
            arm, self.outbox.now, WINDOW, rows,
        )
        assert not self.pruner.settle(self._waits), "the statement was not reached"

    def finish(self):
        self.gate.run("SELECT pg_advisory_unlock(%s)", fire.GATE)
        self.pruner.finish()
        if self.pruner.error:
            raise self.pruner.error
        return self.pruner.cursor.fetchone()[0]


def test_E1_deliveries_added_while_a_batch_is_cut_to_what_fits(outbox):
    """Counted up to the bound and deleted up to the bound would be as many, with one left over."""
    first, second, third = (outbox.event(age=OLD - n) for n in range(3))
    outbox.fan_out(first, 8)
    outbox.fan_out(third, 5)
    writer = outbox.db.connect(autocommit=False).cursor()
    writer.execute(outbox.named("SELECT FROM {event} WHERE id = %s FOR KEY SHARE"), (second,))
    with Stopped(outbox, fire.BATCH, "        IF taken = 0 THEN") as step:
        step.start("default_window", rows=10)
        for number, status in enumerate(("succeeded", "succeeded", "pending")):
            writer.execute(
                outbox.named(
                    "INSERT INTO {delivery} (event_id, receiver_key, status, succeeded_at)"
                    " VALUES (%s, %s, %s, %s)"
                ),
                (second, f"r{number}", status, outbox.now if status == "succeeded" else None),
            )
        writer.connection.commit()
        answer = step.finish()
    assert outbox.deliveries(second) == 3
    assert outbox.events() == {second, third}
    assert (answer["events"], answer["deliveries"], answer["failed"]) == (1, 8, 0)


@pytest.mark.parametrize("status", ["succeeded", "dead"])
def test_E3_a_first_success_between_the_count_and_the_delete_is_kept(outbox, status):
    """Dated before everybody's newest: a receiver that has none is not behind it."""
    outbox.event("succeeded", "dead", "orphaned", age=OLD)
    earlier = outbox.now - timedelta(minutes=1)
    with Stopped(outbox, fire.BATCH, "    BEGIN\n") as step:
        step.start("default_window")
        outbox.sql(
            "UPDATE {delivery} SET status = %s, succeeded_at = %s WHERE receiver_key = 'r2'",
            status, earlier,
        )
        step.finish()
    outbox.prune()
    assert outbox.events() == set()
    assert outbox.last_successes() == {"r1": outbox.now, "r2": earlier}


@pytest.mark.parametrize("policy", ["", "succeeded", "settled"])
def test_E1_a_delivery_added_to_an_event_that_goes_fails_in_its_writer(outbox, policy):
    """At once where the foreign key is checked at once, at the commit where it is deferred."""
    event = outbox.event("succeeded", policy=policy, age=OLD)
    prune = outbox.db.connect(autocommit=False).cursor()
    prune.execute(
        "SELECT outbox.event_prune_step_v1(%s, %s, %s, 10)",
        (policy or "default_window", outbox.now, WINDOW),
    )
    assert prune.fetchone()[0]["events"] == 1
    writer = fire.Actor(outbox.db.dsn)
    writer.run("BEGIN")
    writer.send(
        outbox.named("INSERT INTO {delivery} (event_id, receiver_key, status)"
                     " VALUES (%s, 'new', 'pending')"),
        event,
    )
    waits = "SELECT count(*) > 0 FROM pg_locks WHERE pid = %s AND NOT granted"
    if writer.settle(lambda pid: outbox.one(waits, pid)):
        writer.send("COMMIT")
        assert not writer.settle(lambda pid: outbox.one(waits, pid))
    prune.connection.commit()
    writer.finish()
    assert isinstance(writer.error, psycopg2.errors.ForeignKeyViolation)
    writer.close()
    assert outbox.events() == set() and outbox.deliveries() == 0
