"""Fixtures for the programs under examples/: the driver, the broker and the demonstration."""

import pytest

from hosts import programs


@pytest.fixture
def qretention(request):
    """Calls the driver: qretention("cycle", "--json"). The test's database is its default."""
    for name in ("db", "event_db", "empty_db"):
        if name in request.fixturenames:
            return programs.Driver(request.getfixturevalue(name).dsn)
    return programs.Driver(None)


@pytest.fixture
def broker(request):
    """Calls the example broker on the test's database."""
    return programs.Broker(request.getfixturevalue("db").dsn)
