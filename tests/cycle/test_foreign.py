"""A database whose contract functions were made by somebody else is driven as it is."""

import pytest

from cycle import support
from model.cycles import library_cycle
from model.world import World
from pg import bulk, qret


@pytest.fixture
def foreign_db(cluster):
    db = support.foreign_database(cluster)
    yield db
    cluster.close_connections()
    db.drop()


def test_foreign_functions_drain(foreign_db):
    bulk.backlog(foreign_db, 5, 25, age_seconds=40 * support.DAY)
    with qret.Context(foreign_db.dsn, batch_size=10) as context:
        report = context.cycle()
        assert (report["segments_deleted"], report["txns_purged"]) == (125, 125)
        assert report["messages_deleted"] == 125
        assert report["partitions_deleted"] == 5
        assert context.schema_version("log") == 0
    assert foreign_db.one("SELECT to_regclass('queen.retention_register')") is None


@pytest.mark.parametrize("seed", range(1001, 1021))
def test_foreign_functions_agree_with_the_model(foreign_db, seed):
    foreign_db.sql(
        "CREATE FUNCTION queen.delete_queue_v1(p_name text) RETURNS jsonb LANGUAGE sql AS"
        " $$ SELECT '{}'::jsonb $$"
    )
    world = World(foreign_db, seed)
    world.delete_queue = world.widen = world.new_partition
    for _ in range(2):
        world.live(world.random.randint(10, 40))
        with qret.Context(foreign_db.dsn) as context:
            library_cycle(world, context)


def test_install_leaves_foreign_functions_alone(foreign_db):
    source = "SELECT prosrc FROM pg_proc WHERE proname = 'log_retention_step_v1'"
    before = foreign_db.one(source)
    with qret.Context(foreign_db.dsn) as context:
        context.install("log")
        context.install("log")
        assert context.schema_version("log") > 0
        lines = context.events("foreign_function")
        assert any("log_retention_step_v1" in line.text for line in lines)
        assert foreign_db.one(source) == before
        bulk.backlog(foreign_db, 2, 3)
        assert context.cycle()["segments_deleted"] == 6
