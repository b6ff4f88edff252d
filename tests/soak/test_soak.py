"""The short form of soak.py: a minute a gate by default, QRETENTION_SOAK_MINUTES for more."""

import os

import pytest

from soak import soak

MINUTES = float(os.environ.get("QRETENTION_SOAK_MINUTES", "1"))
SLACK_SECONDS = 4  # more than soak.py by itself: other tests are at work beside this one


@pytest.mark.slow
@pytest.mark.timeout(60 * MINUTES + 180)
@pytest.mark.parametrize("gate, pooled, share", [("session", False, 0.5), ("lease", True, 0.5)])
def test_soak(gate, pooled, share):
    """Half of the time with each: a session gate, and the lease behind a transaction pooler."""
    result = soak.run(MINUTES * share, gate, pooled)
    soak.check(result, SLACK_SECONDS)
    assert result.killed >= 3 and result.cycles >= 5
