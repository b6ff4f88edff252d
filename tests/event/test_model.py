"""Random lives of an outbox, pruned by us and by the reference; each time both are the same."""

import os
import random
from datetime import datetime, timedelta, timezone

import pytest

from event.outbox import ARMS, Outbox
from event.reference import SECOND, Delivery, Event, Reference

SEEDS = 300
PARTS = 6
BASE = datetime(2026, 3, 1, tzinfo=timezone.utc)
RECEIVERS = ("mail", "Mail", "ledger", "hook", "äther")
STATUSES = ("succeeded",) * 6 + (
    "dead",
    "orphaned",
    "cancelled",
    "pending",
    "failed",
    "claimed",
    "strange",
)
POLICIES = ("", "", "succeeded", "settled", "someday")
AGES = (0, 1, 59, 60, 61, 600, 3600, 86400)


def moment(microseconds):
    return BASE + timedelta(microseconds=microseconds)


class Life:
    """One seed: the same things happen to both."""

    def __init__(self, outbox, seed):
        self.rng = random.Random(seed)
        self.outbox = outbox
        self.reference = Reference()
        self.now = 100 * 86400 * SECOND
        outbox.sql("DELETE FROM {delivery}; DELETE FROM {event}; DELETE FROM {success}")

    def record(self):
        rng = self.rng
        event = Event(self.now - rng.choice(AGES) * SECOND + rng.choice((-1, 0, 0, 1)))
        if rng.random() < 0.4:
            event.window = rng.choice((1, 60, 600, 86400, 2147483647))
        else:
            event.policy = rng.choice(POLICIES)
        key = self.outbox.event(
            recorded=moment(event.recorded), window=event.window, policy=event.policy
        )
        for receiver in rng.sample(RECEIVERS, rng.choice((0, 1, 1, 2, 3, 5))):
            delivery = Delivery(receiver, rng.choice(STATUSES))
            if delivery.status == "succeeded" or rng.random() < 0.2:
                delivery.succeeded = self.now - rng.randint(0, 1000) * SECOND
            event.deliveries.append(delivery)
            self.outbox.sql(
                "INSERT INTO {delivery} (event_id, receiver_key, status, succeeded_at)"
                " VALUES (%s, %s, %s, %s)",
                key,
                receiver,
                delivery.status,
                None if delivery.succeeded is None else moment(delivery.succeeded),
            )
        self.reference.events[key] = event

    def change(self):
        """A delivery ends, fails, or is reopened."""
        if not self.reference.events:
            return
        key = self.rng.choice(sorted(self.reference.events))
        event = self.reference.events[key]
        if not event.deliveries:
            return
        delivery = self.rng.choice(event.deliveries)
        delivery.status = self.rng.choice(STATUSES)
        if delivery.status == "succeeded":
            delivery.succeeded = self.now
        self.outbox.sql(
            "UPDATE {delivery} SET status = %s, succeeded_at = %s"
            " WHERE event_id = %s AND receiver_key = %s",
            delivery.status,
            None if delivery.succeeded is None else moment(delivery.succeeded),
            key,
            delivery.receiver,
        )

    def prune(self):
        default = self.rng.choice((0, 1, 60, 600, 3600, 90 * 86400))
        rows = self.rng.choice((1, 2, 3, 5, 17, 5000))
        expected = self.reference.prune(self.now, default)
        counts = self.outbox.prune(now=moment(self.now), window=default, rows=rows)
        assert {arm: counts[arm]["events"] for arm in ARMS} == expected
        assert self.outbox.events() == set(self.reference.events)
        assert self.outbox.deliveries() == sum(
            len(event.deliveries) for event in self.reference.events.values()
        )
        assert self.outbox.last_successes() == {
            receiver: moment(at) for receiver, at in self.reference.last_success.items()
        }

    def live(self):
        for _ in range(3):
            for _ in range(self.rng.randint(1, 8)):
                self.rng.choice((self.record, self.record, self.change))()
            self.now += self.rng.choice(AGES) * SECOND
            self.prune()


def seeds(part):
    chosen = os.environ.get("QRETENTION_SEEDS")
    return [int(chosen)] if chosen else range(part, SEEDS, PARTS)


@pytest.mark.parametrize("part", range(PARTS))
def test_model_agrees(request, part):
    outbox = request.getfixturevalue("django" if part % 3 == 2 else "own")
    assert isinstance(outbox, Outbox)
    for constraint in ("event_window_is_positive", "event_window_or_policy"):
        outbox.sql(f"ALTER TABLE {outbox.event_table} DROP CONSTRAINT IF EXISTS {constraint}")
    for seed in seeds(part):
        try:
            Life(outbox, seed).live()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}") from error
