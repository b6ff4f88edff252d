"""Random lives, each lived in a database and in the reference model at once.

QRETENTION_SEEDS=17 (or 1-50, or 3,9) chooses the seeds for each of the ways below.
"""

import os

import pytest

from model import cycles
from model.world import World

CYCLES = 3


def seeds(default):
    for piece in os.environ.get("QRETENTION_SEEDS", default).split(","):
        first, _, last = piece.partition("-")
        yield from range(int(first), int(last or first) + 1)


def live(home, seed, cycle):
    world = World(home.db, seed, home.broker)
    for _ in range(CYCLES):
        world.live(world.random.randint(10, 40))
        cycle(world)
    home.empty()


@pytest.mark.parametrize("seed", seeds("1-300"))
def test_model_sql_steps(home, seed):
    live(home, seed, cycles.sql_v1)


@pytest.mark.parametrize("seed", seeds("1-100"))
def test_model_second_sql_steps(home, seed):
    live(home, seed, cycles.sql_v2)


@pytest.mark.parametrize("seed", seeds("1-100"))
def test_model_library_steps(home, seed):
    live(home, seed, cycles.library_steps)


@pytest.mark.parametrize("seed", seeds("1-300"))
def test_model_library_cycle(home, seed):
    live(home, seed, cycles.library_cycle)


@pytest.mark.parametrize("seed", seeds("1-100"))
def test_model_library_due_cycle(home, seed):
    live(home, seed, cycles.library_due_cycle)
