"""Fixtures of the model suite: a database in which several lives are lived, one after the other."""

import pytest

from pg.broker import Broker

PARTS = ("broker", "log")
MOST_LIVES = 25  # nothing vacuums what they leave on the pages


class Home:
    """A database and a broker in it. To empty it costs a thirtieth of making another."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.db = cluster.create_database(PARTS)
        self.lives = 0
        self._broker = None
        self._tables = [name for name in self._all_tables() if self._is_empty(name)]

    def _all_tables(self):
        rows = self.db.sql(
            "SELECT format('%I.%I', schemaname, tablename) FROM pg_tables"
            " WHERE schemaname IN ('queen', 'queen_streams') ORDER BY 1"
        )
        return [row[0] for row in rows]

    def _is_empty(self, table):
        return not self.db.one(f"SELECT EXISTS (SELECT FROM {table})")

    @property
    def broker(self):
        """Other tests' ends close what is connected."""
        if self._broker is None or self._broker.connection.closed:
            self._broker = Broker(self.db, prepares=True)
        return self._broker

    def empty(self):
        """As installed again: no row in any table that had none, whatever triggers would add."""
        deletions = "; ".join(f"DELETE FROM {table}" for table in self._tables)
        self.db.sql(f"BEGIN; SET LOCAL session_replication_role = replica; {deletions}; COMMIT")
        self.lives += 1

    def remove(self):
        self.db.close()
        self.cluster.close_connections()
        self.db.drop()


@pytest.fixture(scope="session")
def empty_homes():
    return []


@pytest.fixture
def home(cluster, empty_homes):
    """Kept only after a life that ended well, which says so by emptying it."""
    found = empty_homes.pop() if empty_homes else Home(cluster)
    lives = found.lives
    yield found
    if lives < found.lives < MOST_LIVES:
        empty_homes.append(found)
    else:
        found.remove()
