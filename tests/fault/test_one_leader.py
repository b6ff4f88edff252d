"""B03, L16: the lead spans the whole cycle, and what a lost lane left running is waited for."""

import itertools
import threading
import time

import pytest

from cycle import support
from fault import spies, worlds
from fault.proxy import Proxy, socket_of
from pg import bulk, qret

BATCHES = 50


def begun(context, steps=1):
    """Begins a cycle and goes on until so many steps are answered."""
    context.begin()
    while context.report()["steps"] < steps:
        if context.process() == qret.WAIT:
            context.wait()


@pytest.mark.parametrize("gate", ["session", "lease"])
def test_lead_spans_the_cycle(stamped_db, gate):
    """B03: two instances, fifty batches each, both at it all the time: they never interleave."""
    db = stamped_db
    spies.install(db)
    support.slow_deletes(db, 0.005)
    _, ids = bulk.backlog(db, 5, BATCHES // 5)
    options = {"gate": gate, "batch_size": 1, "interval_ms": 1000}
    codes, over = [], threading.Event()

    def compete():
        dsn = db.dsn + " application_name=second"
        with qret.Context(dsn, **options) as second:
            while not over.is_set():
                codes.append(second.try_cycle()[0])
                time.sleep(0.005)
            while (code := second.try_cycle()[0]) == qret.BUSY:
                second.wait()
            codes.append(code)

    with qret.Context(db.dsn + " application_name=first", **options) as first:
        begun(first)
        rival = threading.Thread(target=compete)
        rival.start()
        try:
            assert support.finish(first) == qret.DONE, first.message
            assert first.report()["segments_deleted"] == BATCHES
        finally:
            bulk.segments(db, ids, BATCHES // 5, 3600)
            over.set()
            rival.join()
    assert codes.count(qret.BUSY) > 5 and codes[-1] == qret.DONE
    hosts = [host for host, *_ in spies.swept(db)]
    assert [host for host, _ in itertools.groupby(hosts)] == ["first", "second"]
    assert len(hosts) == 2 * BATCHES
    assert not spies.overlaps(db) and spies.unguarded(db) == 0


# Whoever is named runs slowly; the others take a moment.
SLOW_FOR_ONE = """
CREATE TABLE public.victim (pid int);
CREATE FUNCTION public.dawdle() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_sleep(CASE WHEN EXISTS (SELECT FROM public.victim WHERE pid = pg_backend_pid())
        THEN 2.5 ELSE 0.02 END);
    RETURN NULL;
END $$;
CREATE TRIGGER zdawdle AFTER DELETE ON queen.log_segments
    FOR EACH STATEMENT EXECUTE FUNCTION public.dawdle();
"""
SLEEPING = """
SELECT EXISTS (SELECT FROM pg_stat_activity JOIN public.victim USING (pid)
    WHERE wait_event = 'PgSleep')
"""


def test_lost_lane_leaves_a_barrier_to_the_next_claim(stamped_db, stamped):
    """Its last step runs on at the server: the release is not clean, and the heir waits for it."""
    db = stamped_db
    spies.install(db)
    db.sql(SLOW_FOR_ONE)
    bulk.backlog(db, 12, 2)
    options = {"gate": "lease", "interval_ms": 100, "idle_limit_ms": 0, "batch_size": 1}
    owed = "SELECT barrier_owed FROM queen.retention_lease"
    with Proxy(socket_of(stamped)) as proxy:
        dsn = proxy.dsn(db.name, application_name="first")
        limits = {"parallelism": 2, "lock_timeout_ms": 100, "late_lock_ms": 50}
        with qret.Context(dsn, **limits, **options) as first:
            first.begin()
            while not db.one(SLEEPING):
                db.sql(
                    "INSERT INTO public.victim SELECT pid FROM pg_stat_activity"
                    " WHERE application_name = 'first' ORDER BY backend_start OFFSET 1"
                    " ON CONFLICT DO NOTHING"
                )
                if first.process() == qret.WAIT:
                    first.wait()
            proxy.strike_link(proxy.links[1], "cut")
            assert support.finish(first) == qret.PARTIAL, first.message
            assert first.events("lane_lost")
        assert db.one(SLEEPING) and db.one(owed)
    with qret.Context(db.dsn + " application_name=heir", lock_timeout_ms=9000, **options) as heir:
        worlds.heal(heir)
        assert not db.one(owed)
    assert not db.one(SLEEPING) and not spies.overlaps(db)
    assert [host for host, *_ in spies.swept(db)][-1] == "heir"
    assert worlds.audited(db) == 24 and bulk.count(db) == 0
