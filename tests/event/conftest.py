"""Fixtures of the event suite: an outbox of our own, one such as Django makes, and both."""

import pytest

from event.installing import install_event
from event.outbox import DJANGO_TABLES, Outbox, make_django_tables
from pg.cluster import Database


def _template(cluster, name, django):
    """A database installed once a session, to be copied."""
    made = cluster.__dict__.setdefault("event_templates", set())
    if name in made:
        return
    database = cluster.create_database(name=name)
    settings = {}
    if django:
        make_django_tables(database)
        settings = DJANGO_TABLES
    install_event(database.dsn, **settings)
    database.close()
    made.add(name)


def _copy(cluster, name):
    strategy = "STRATEGY FILE_COPY" if cluster.version >= 150000 else ""
    cluster.admin(f'CREATE DATABASE "{name}_copy" TEMPLATE "{name}" {strategy}')
    database = Database(cluster, f"{name}_copy")
    yield database
    database.close()
    cluster.close_connections()
    database.drop()


@pytest.fixture
def event_db(cluster):
    """A fresh database with the event part on its own tables."""
    _template(cluster, "event_own", False)
    yield from _copy(cluster, "event_own")


@pytest.fixture
def django_db(cluster):
    """A fresh database with the event part over tables such as Django makes."""
    _template(cluster, "event_django", True)
    yield from _copy(cluster, "event_django")


@pytest.fixture
def own(event_db):
    return Outbox(event_db)


@pytest.fixture
def django(django_db):
    return Outbox(django_db, **DJANGO_TABLES)


@pytest.fixture(params=["own", "django"])
def outbox(request):
    """Each test that takes it runs on both kinds of tables."""
    return request.getfixturevalue(request.param)
