"""E1: nothing owed is ever deleted, in random interleavings; and the test that says so can fail."""

import re

import pytest

from event import fire

SEEDS = 500  # on each kind of table


def run(outbox, seeds, **settings):
    """The first seed whose schedule lost a delivery, and what it lost; None: none did."""
    burning = fire.Fire(outbox, **settings)
    try:
        for seed in seeds:
            lost = burning.schedule(seed)
            if lost:
                return seed, lost
        return None
    finally:
        burning.close()


@pytest.mark.slow
def test_E1_nothing_owed_is_lost_under_fire(outbox):
    assert run(outbox, range(SEEDS)) is None


def change(pattern, replacement, count=1):
    """A mutation: the pattern must be there exactly so often, or the test has lost its object."""

    def mutate(text):
        mutated, found = re.subn(pattern, replacement, text, flags=re.DOTALL)
        assert found == count
        return mutated

    return mutate


MUTATIONS = {
    "events_are_not_locked": {fire.LOCK: change(r"\n        FOR UPDATE SKIP LOCKED", "")},
    "events_are_locked_weaker": {
        fire.LOCK: change("FOR UPDATE SKIP LOCKED", "FOR NO KEY UPDATE SKIP LOCKED")
    },
    "owed_deliveries_are_taken_too": {
        fire.TAKE: change(r" AND \(d\.status = ANY \(v_terminal\)\) IS TRUE", "")
    },
    "what_was_left_is_not_counted": {
        fire.BATCH: change(r"v_there\.deliveries <> \(\n", "0 > (\n")
    },
    "deliveries_are_not_locked": {
        fire.HOLD: change(r"\n        FOR UPDATE SKIP LOCKED\n", "\n")
    },
    "careful_without_the_number": {fire.CAREFUL: change(r"e\.there = e\.held AND ", "")},
    "careful_without_the_status": {fire.CAREFUL: change(r" AND e\.terminal = e\.held", "")},
    "chunk_without_second_look": {
        fire.CHUNK: change(r"    IF EXISTS \(.*?END IF;\n", "")
    },
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_E1_the_fire_finds_what_is_taken_out(own, name):
    rows = (2, 1) if fire.CHUNK in MUTATIONS[name] else (5000,)
    assert run(own, range(2000), mutations=MUTATIONS[name], rows=rows) is not None
