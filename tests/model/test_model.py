"""Random lives, each lived in a database and in the reference model.

QRETENTION_SEEDS=17 or 1-50 or 3,9 chooses the seeds; the whole suite runs 300.
"""

import os

import pytest

from model.world import World, sql_cycle

CYCLES = 3


def seeds():
    chosen = os.environ.get("QRETENTION_SEEDS", "1-300")
    for piece in chosen.split(","):
        first, _, last = piece.partition("-")
        yield from range(int(first), int(last or first) + 1)


def live(world, cycle):
    for _ in range(CYCLES):
        world.live(world.random.randint(10, 40))
        cycle(world)


@pytest.mark.parametrize("seed", seeds())
def test_model_sql_steps(db, seed):
    live(World(db, seed), sql_cycle)
