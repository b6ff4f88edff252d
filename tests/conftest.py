"""Fixtures that every suite uses: a private cluster a worker, a fresh database a test."""

import itertools
import signal

import pytest

from pg import qret
from pg.cluster import Cluster, RunFolder

LOG_PARTS = ("broker", "log")
LOG_TAIL = 20000


def pytest_configure(config):
    """A run that is ended from outside cleans up as after Ctrl-C."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if not is_worker(config):
        config.run_folder = RunFolder()  # before the workers, which inherit its name


def pytest_unconfigure(config):
    if hasattr(config, "run_folder"):
        config.run_folder.remove()


def is_worker(config):
    """Whether this is one of xdist's processes and not the one that started them."""
    return hasattr(config, "workerinput")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Slow tests come first, so that no worker is left alone with one at the end."""
    workers = config.workerinput["workercount"] if is_worker(config) else 1
    slow = [item for item in items if item.get_closest_marker("slow")]
    quick = [item for item in items if not item.get_closest_marker("slow")]
    items[:] = spread(slow, quick, workers)


def spread(slow, quick, workers):
    """Each worker's share of the slow ones is at the head of the piece that it is given first.

    xdist deals out a quarter of all tests in pieces of one length, and the others as it goes. The
    slow tests of a file stay together, since what they share is slow to make.
    """
    files = [list(group) for _, group in itertools.groupby(slow, key=lambda item: item.path)]
    piece = max((len(slow) + len(quick)) // workers // 4, 2)
    ordered = []
    for worker in range(workers):
        share = [item for file in files[worker::workers] for item in file]
        taken = max(piece - len(share), 0)
        ordered += share + quick[:taken]
        quick = quick[taken:]
    return ordered + quick


@pytest.fixture(scope="session")
def cluster():
    """This worker's own PostgreSQL cluster."""
    with Cluster() as server:
        yield server


@pytest.fixture(scope="session")
def lib():
    """The ctypes binding of the built library."""
    return qret.load()


def _fresh(cluster, parts):
    database = cluster.create_database(parts)
    yield database
    database.close()
    cluster.close_connections()
    database.drop()


@pytest.fixture
def db(cluster):
    """A fresh database with the broker's tables and the log part installed."""
    yield from _fresh(cluster, LOG_PARTS)


@pytest.fixture
def event_db(cluster):
    """A fresh database with the event part installed."""
    yield from _fresh(cluster, ("event",))


@pytest.fixture
def empty_db(cluster):
    """A fresh database with nothing installed."""
    yield from _fresh(cluster, ())


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_setup(item):
    yield
    server = item.funcargs.get("cluster") if hasattr(item, "funcargs") else None
    item.server_log_start = server.log_size() if server else 0


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    """A failed test shows what the server logged while it ran."""
    outcome = yield
    report = outcome.get_result()
    server = getattr(item, "funcargs", {}).get("cluster")
    if report.failed and server is not None:
        text = server.log(getattr(item, "server_log_start", 0))[-LOG_TAIL:]
        report.sections.append(("PostgreSQL log", text))
