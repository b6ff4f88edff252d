"""A cycle ends, and takes every arm's turn, whatever hosts put in its way."""

import time

from pg import bulk, qret

from . import support


def test_hold_by_a_trigger_is_listed_once_a_cycle(db):
    """A legal hold: deletes are swallowed, so the partition stays due. The others go all the same."""
    _, ids = bulk.backlog(db, 3, 2)
    db.sql(
        "CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS"
        f" $$BEGIN IF OLD.partition_id = '{ids[0]}' THEN RETURN NULL; END IF; RETURN OLD; END$$"
    )
    db.sql(
        "CREATE TRIGGER hold BEFORE DELETE ON queen.log_segments"
        " FOR EACH ROW EXECUTE FUNCTION hold()"
    )
    for version in ("auto", "1"):
        with qret.Context(db.dsn, step_version=version) as context:
            report = context.cycle()
            assert report["round_trips"] < 60
            assert len(context.worklist()) == 1
    assert db.sql("SELECT DISTINCT partition_id::text FROM queen.log_segments") == [(ids[0],)]


def test_segment_from_before_all_time(db):
    """A stamp of -infinity is the oldest there can be, and no reason to look for ever."""
    _, ids = bulk.backlog(db, 2, 2)
    db.sql(
        "UPDATE queen.log_segments SET created_at = '-infinity'"
        " WHERE partition_id = %s AND base_offset = 0",
        ids[0],
    )
    with qret.Context(db.dsn) as context:
        assert context.cycle()["segments_deleted"] == 4
        assert context.cycle()["segments_deleted"] == 0


def test_crowd_of_locked_new_partitions_ends_the_list(db):
    """More partitions that nobody can settle than a cycle can leave out."""
    ids = bulk.partitions(db, bulk.queue(db), 1200)
    holder = db.connect(autocommit=False)
    with holder.cursor() as cursor:
        cursor.execute(
            "SELECT 1 FROM queen.log_partitions WHERE id = ANY (%s::uuid[]) FOR UPDATE", (ids,)
        )
        with qret.Context(db.dsn) as context:
            assert context.cycle()["round_trips"] < 100
    holder.rollback()


def test_renewal_that_fails_ends_the_cycle(db):
    """L16: it is neither sent again at once, nor in the way of a stop."""
    bulk.backlog(db, 20, 20)
    with qret.Context(
        db.dsn, gate="lease", interval_ms="600", batch_size="1", max_rows_per_second="50"
    ) as context:
        context.begin()
        while not context.report()["segments_deleted"]:
            if context.process() == qret.WAIT:
                context.wait()
        db.sql("ALTER FUNCTION queen.retention_lease_renew_v1 RENAME TO elsewhere")
        assert support.finish(context) == qret.ERR_SCHEMA
        assert context.report()["round_trips"] < 200


def test_barrier_stays_owed_after_a_claim_is_given_back(db):
    """L16: who could not wait out an earlier leader's step leaves that to the next claim."""
    claim = "SELECT fence, barrier FROM queen.retention_lease_claim_v1(%s, 60000, 1, 737001)"
    release = "SELECT queen.retention_lease_release_v1(%s, true, %s)"
    ((first, owed),) = db.sql(claim, "one")
    assert not owed
    db.sql(release, first, False)
    ((second, owed),) = db.sql(claim, "two")
    assert owed
    db.sql(release, second, False)
    ((third, owed),) = db.sql(claim, "three")
    assert owed
    db.sql(release, third, True)
    assert db.sql(claim, "four")[0][1] is False


def test_every_arm_has_its_turn_beside_a_busy_host(event_db):
    """E6, B06: overdue beside a host that is never idle, one step a cycle, of the first arm with work."""
    event_db.sql(
        "INSERT INTO outbox.event (name, recorded_at, delete_when)"
        " SELECT 'e', now() - interval '200 days', w"
        " FROM unnest(ARRAY['succeeded', 'settled', '']) AS w, generate_series(1, 5)"
    )
    with qret.Context(
        event_db.dsn, engines="event", event_prune_interval_ms="1", event_prune_max_defer_ms="1"
    ) as context:
        context.cycle()
        context.set_busy(True)
        deleted = 0
        for _ in range(12):
            time.sleep(0.01)
            deleted += context.cycle()["events_deleted"]
        assert deleted == 15
