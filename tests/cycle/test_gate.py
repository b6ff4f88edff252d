"""L16, gates session and none: one leader, never a lock left behind, and busy is no error."""

import threading

import pytest

from cycle import support
from pg import bulk, qret

KEY = 737001


def take(db, key=KEY):
    """Another leader's session."""
    leader = db.connect()
    with leader.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", (key,))
    return leader


def test_gate_busy_skips_the_cycle(db):
    bulk.backlog(db, 1, 3)
    leader = take(db)
    with qret.Context(db.dsn) as context:
        code, report = context.try_cycle()
        assert code == qret.BUSY == report["outcome"]
        assert report["segments_deleted"] == report["steps"] == 0
        assert context.message == ""
        assert not [line for line in context.logs if line.level <= qret.LOG_WARN]
        leader.close()
        assert support.eventually(lambda: not support.advisory_locks(db))
        assert context.cycle()["segments_deleted"] == 3


def test_gate_is_held_through_the_cycle_and_no_longer(db):
    bulk.backlog(db, 3, 5)
    with qret.Context(db.dsn, batch_size=1) as context:
        held = []
        context.begin()
        while (code := context.process()) in (qret.MORE, qret.WAIT):
            if code == qret.WAIT:
                context.wait()
            if 0 < context.report()["steps"]:
                held.append([key for _, key in support.advisory_locks(db)])
        assert code == qret.DONE
        assert held and held[0] == [KEY]
        assert support.advisory_locks(db) == []


def test_gate_key_is_an_option(db):
    take(db)
    bulk.backlog(db, 1, 3)
    with qret.Context(db.dsn, gate_key=42) as context:
        assert context.cycle()["segments_deleted"] == 3
    take(db, 42)
    with qret.Context(db.dsn, gate_key=42) as context:
        assert context.try_cycle()[0] == qret.BUSY


def test_gate_none_takes_no_lock(db):
    take(db)
    bulk.backlog(db, 2, 3)
    with qret.Context(db.dsn, gate="none", batch_size=1) as context:
        context.begin()
        while (code := context.process()) in (qret.MORE, qret.WAIT):
            if code == qret.WAIT:
                context.wait()
            assert len(support.advisory_locks(db)) == 1
        assert code == qret.DONE
        assert context.report()["segments_deleted"] == 6


def test_gate_released_after_an_error(db):
    bulk.backlog(db, 1, 3)
    db.sql("ALTER TABLE queen.log_segments RENAME TO hidden")
    with qret.Context(db.dsn) as context:
        code, _ = context.try_cycle()
        assert code < 0
        assert support.eventually(lambda: not support.advisory_locks(db))
        db.sql("ALTER TABLE queen.hidden RENAME TO log_segments")
        assert context.cycle()["segments_deleted"] == 3


def test_gate_released_after_partial(db):
    _, ids = bulk.backlog(db, 2, 3)
    support.fail_deletes_of(db, ids[0])
    with qret.Context(db.dsn) as context:
        assert context.try_cycle()[0] == qret.PARTIAL
        assert support.advisory_locks(db) == []


def test_gate_released_after_a_stop(db):
    bulk.backlog(db, 20, 2)
    with qret.Context(db.dsn, batch_size=1) as context:
        context.begin()
        while context.report()["steps"] < 2:
            if context.process() == qret.WAIT:
                context.wait()
        context.stop()
        assert support.finish(context) == qret.STOPPED
        assert support.advisory_locks(db) == []


def unlock_behind_our_back(db):
    """A step's trigger gives the gate's lock away in the library's own session."""
    db.sql(
        """CREATE FUNCTION public.unlock() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            PERFORM pg_advisory_unlock_all();
            RETURN NULL;
        END $$"""
    )
    db.sql(
        "CREATE TRIGGER unlock AFTER DELETE ON queen.log_segments"
        " FOR EACH STATEMENT EXECUTE FUNCTION public.unlock()"
    )


def test_gate_release_unconfirmed_closes_an_owned_connection(db):
    """The cycle stays good; a warning says so; the session is gone and with it any lock."""
    bulk.backlog(db, 1, 3)
    unlock_behind_our_back(db)
    with qret.Context(db.dsn) as context:
        assert context.cycle()["segments_deleted"] == 3
        assert [line.level for line in context.events("release_failed")] == [qret.LOG_WARN]
        assert support.eventually(lambda: not support.others(db))


def test_gate_release_unconfirmed_taints_a_borrowed_connection(db):
    bulk.backlog(db, 1, 3)
    unlock_behind_our_back(db)
    borrowed = db.connect()
    with qret.Context() as context:
        context.attach(borrowed)
        assert context.cycle()["segments_deleted"] == 3
        assert context.events("release_failed")
        assert context.detach() is True


def test_gate_borrowed_connection_comes_back_clean(db):
    bulk.backlog(db, 1, 3)
    borrowed = db.connect()
    with qret.Context() as context:
        context.attach(borrowed)
        assert context.cycle()["segments_deleted"] == 3
        assert support.advisory_locks(db) == []
        assert context.detach() is False
    with borrowed.cursor() as cursor:
        cursor.execute("SELECT 1")
        assert cursor.fetchone() == (1,)


def test_gate_by_hand(db):
    """Taken by the host, kept by cycles, released by the host, also while stopped."""
    bulk.backlog(db, 1, 3)
    with qret.Context(db.dsn) as context, qret.Context(db.dsn) as rival:
        assert context.gate_take()
        assert not rival.gate_take()
        assert rival.try_cycle()[0] == qret.BUSY
        assert context.cycle()["segments_deleted"] == 3
        assert [key for _, key in support.advisory_locks(db)] == [KEY]
        context.stop()
        context.gate_release()
        assert support.advisory_locks(db) == []
        assert rival.gate_take()
        rival.gate_release()
        assert context.call("gate_release") == qret.ERR_STATE


def test_gate_freed_with_the_context(db):
    with qret.Context(db.dsn) as context:
        assert context.gate_take()
    assert support.eventually(lambda: not support.advisory_locks(db))


@pytest.mark.parametrize("gate", ["session"])
def test_gate_admits_one_of_many(db, gate):
    """Four hosts on one backlog: every row goes once, audit rows agree, no cycle meets another."""
    bulk.backlog(db, 20, 5)
    support.slow_deletes(db, 0.005)
    codes = []

    def host():
        with qret.Context(db.dsn, gate=gate, batch_size=2) as context:
            codes.append(context.try_cycle()[0])

    hosts = [threading.Thread(target=host) for _ in range(4)]
    for thread in hosts:
        thread.start()
    for thread in hosts:
        thread.join()
    assert codes.count(qret.DONE) >= 1
    assert set(codes) <= {qret.DONE, qret.BUSY}
    assert bulk.count(db) == 0
    assert db.one("SELECT sum(messages_deleted) FROM queen.retention_history") == 100
