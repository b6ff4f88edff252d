"""The harness itself: databases are fresh, separate and gone afterwards."""

import fcntl
import os

from pg.cluster import PREFIX, remove_orphans


def test_fresh_database_answers(empty_db):
    assert empty_db.one("SELECT 1") == 1
    assert empty_db.sql("SELECT %s::int + 1", 2) == [(3,)]
    assert empty_db.one("SELECT '100%'") == "100%"


def test_database_takes_any_name(cluster):
    odd = cluster.create_database(name='We"ird.Schéma')
    try:
        assert odd.one("SELECT current_database()") == 'We"ird.Schéma'
    finally:
        odd.drop()
    assert not cluster.admin("SELECT 1 FROM pg_database WHERE datname = %s", odd.name)


def test_orphan_of_a_killed_run_is_removed(tmp_path):
    """A folder goes once its owner's lock is free and it is a minute old; one in use stays."""
    folders = {name: tmp_path / (PREFIX + name) for name in ("orphan", "young", "used")}
    for folder in folders.values():
        folder.mkdir()
        (folder / "owner").touch()
    for name in ("orphan", "used"):
        os.utime(folders[name] / "owner", (0, 0))
    with open(folders["used"] / "owner", "rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        remove_orphans(tmp_path)
        left = sorted(path.name for path in tmp_path.iterdir())
        assert left == [PREFIX + "used", PREFIX + "young"]
