"""B43, B69: a phase that fails undoes and blocks no other; a backend that dies there is told."""

import pytest

from cycle import support
from fault import worlds
from pg import bulk, qret

# Phase -> (the relation it deletes from, the count in the report, how much there is to count).
PHASES = {
    "retention": ("queen.log_segments", "segments_deleted", 3),
    "txns_purge": ("queen.log_txns", "txns_purged", 6),
    "max_wait": ("queen.log_segments", "max_wait_evicted", 3),
    "partition_cleanup": ("queen.log_partitions", "partitions_deleted", 1),
    "metrics_purge": ("queen.system_metrics", "metrics_purged", 1),
    "event_prune": ("outbox.event", "events_deleted", 5),
}
OPTIONS = {"engines": "log,event", "event_prune_interval_ms": 0}
MAX_WAIT = "max_wait"  # the queue whose segments only phase 3 takes


@pytest.fixture
def whole_db(cluster):
    """Both engines, and work for all six phases."""
    db = cluster.create_database(("broker", "log", "event"))
    worlds.fill(db, segments=3)
    queue_id = bulk.queue(db, MAX_WAIT, max_wait_time_seconds=60)
    ids = bulk.partitions(db, queue_id, 1, 2 * support.HOUR, "w")
    bulk.consumer(db, ids)
    bulk.segments(db, ids, 3, 2 * support.HOUR)
    db.sql(worlds.OLD_METRIC)
    db.sql(
        "INSERT INTO outbox.event (name, payload, recorded_at)"
        " SELECT 'e', '{}', now() - interval '400 days' FROM generate_series(1, 5)"
    )
    yield db
    db.close()
    cluster.close_connections()
    db.drop()


def act_in(db, phase, action):
    """Runs the PL/pgSQL statement in every delete of that phase."""
    relation, *_ = PHASES[phase]
    mine = "true"
    if relation == "queen.log_segments":
        comparison = "=" if phase == "max_wait" else "<>"
        mine = (
            "(SELECT q.name FROM queen.queues AS q JOIN queen.log_partitions AS p"
            f" ON p.queue_id = q.id WHERE p.id = OLD.partition_id) {comparison} '{MAX_WAIT}'"
        )
    db.sql(
        f"CREATE FUNCTION public.act() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        f" IF {mine} THEN {action}; END IF; RETURN OLD; END $$"
    )
    db.sql(
        f"CREATE TRIGGER act BEFORE DELETE ON {relation}"
        " FOR EACH ROW EXECUTE FUNCTION public.act()"
    )


def counts(report, *left_out):
    return {count: report[count] for name, (_, count, _) in PHASES.items() if name not in left_out}


def wanted(*left_out):
    return {count: much for name, (_, count, much) in PHASES.items() if name not in left_out}


@pytest.mark.parametrize("phase", PHASES)
def test_failing_phase_leaves_the_others(whole_db, phase):
    """B43: what the others did is committed, and what failed goes as soon as it can."""
    act_in(whole_db, phase, "RAISE EXCEPTION 'not today'")
    with qret.Context(whole_db.dsn, **OPTIONS) as context:
        code, report = context.try_cycle()
        assert code == (qret.DONE if phase == "metrics_purge" else qret.PARTIAL), context.message
        assert counts(report, phase) == wanted(phase)
        assert report[PHASES[phase][1]] == 0
        whole_db.sql("DROP FUNCTION public.act() CASCADE")
    with qret.Context(whole_db.dsn, **OPTIONS) as context:  # nothing backs off in a new one
        again = counts(context.cycle())
        assert again == {**dict.fromkeys(wanted(), 0), **wanted(*set(PHASES) - {phase})}


@pytest.mark.parametrize("phase", PHASES)
def test_backend_terminated_in_that_phase(whole_db, phase):
    """B69: one return, class CONNECTION, the server's own word; the next cycle does the rest.

    L10 calls a failed metrics purge no failure of the cycle, but with the session its gate is gone.
    """
    act_in(whole_db, phase, "PERFORM pg_sleep(20)")
    with qret.Context(whole_db.dsn, **OPTIONS) as context:
        context.begin()
        kill = (
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
            " WHERE wait_event = 'PgSleep' AND datname = current_database()"
        )
        while not whole_db.one(kill):
            code = context.process()
            assert code in (qret.MORE, qret.WAIT), context.message
        assert support.finish(context) == qret.ERR_CONNECTION
        assert context.sqlstate == "57P01" and context.retryable
        first = context.report()
        assert (first["outcome"], first["consecutive_failures"]) == (qret.ERR_CONNECTION, 1)
        assert len(context.events("cycle_error")) == 1
        assert context.call("cycle_process") == qret.ERR_STATE
        whole_db.sql("DROP FUNCTION public.act() CASCADE")
        rest = worlds.heal(context)
        assert rest["consecutive_failures"] == 0
    with qret.Context(whole_db.dsn, **OPTIONS) as context:  # its phase 4 is due at once
        last = context.cycle()
    assert {name: first[name] + rest[name] + last[name] for name in wanted()} == wanted()
