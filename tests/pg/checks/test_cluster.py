"""The harness itself: databases are fresh, separate and gone afterwards."""


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
