"""Fixtures for the tests of survival."""

import pytest

from fault import proxy as proxies
from fault.secured import Secured
from pg.cluster import Cluster


@pytest.fixture
def proxy(cluster):
    """A fault proxy in front of the private cluster."""
    with proxies.Proxy(proxies.socket_of(cluster)) as between:
        yield between


@pytest.fixture(scope="session")
def secured():
    """A cluster with passwords and TLS, on TCP."""
    with Secured() as server:
        yield server


@pytest.fixture
def secured_db(secured):
    """A fresh database there."""
    database = secured.create_database(("broker", "log"))
    yield database
    database.close()
    secured.close_connections()
    database.drop()


@pytest.fixture(scope="session")
def stamped():
    """A cluster that remembers when transactions were committed."""
    with Cluster(settings={"track_commit_timestamp": "on"}) as server:
        yield server


@pytest.fixture
def stamped_db(stamped):
    """A fresh database there."""
    database = stamped.create_database(("broker", "log"))
    yield database
    database.close()
    stamped.close_connections()
    database.drop()
