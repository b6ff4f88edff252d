"""E7, E9: events that cannot be deleted, and rows in no vocabulary: told, and in nobody's way."""

import pytest

from event.outbox import ARMS, DAY, WINDOW
from pg import qret, qret_types

OLD = WINDOW + DAY


def refer(outbox, *events, deferred=""):
    """Something of the host's that refers to events and does not let them go."""
    outbox.sql(
        "CREATE TABLE IF NOT EXISTS public.audit (event_id bigint REFERENCES {event} (id)"
        f" {deferred})"
    )
    for event in events:
        outbox.sql("INSERT INTO public.audit VALUES (%s)", event)


def refuse(outbox, condition, says="no", table="{event}"):
    """A trigger of the host's that lets no such row go."""
    outbox.sql(
        "CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS"
        f" $$ BEGIN IF {condition} THEN RAISE '{says}'; END IF; RETURN OLD; END $$"
    )
    outbox.sql(
        f"CREATE TRIGGER refuse BEFORE DELETE ON {table} FOR EACH ROW"
        " EXECUTE FUNCTION public.refuse()"
    )


@pytest.mark.parametrize("deferred", ["", "DEFERRABLE INITIALLY DEFERRED"])
@pytest.mark.parametrize("rows", [5000, 7, 1])
def test_E7_an_event_that_fails_alone_stops_nobody(outbox, rows, deferred):
    events = [outbox.event("succeeded", "dead", age=OLD - n) for n in range(20)]
    held = {events[0], events[7], events[19]}
    refer(outbox, *held, deferred=deferred)
    for _ in range(2):
        failed = []
        after = None
        while True:
            answer = outbox.limited("default_window", rows=rows, after=after)
            assert answer["events"] + answer["deliveries"] <= rows
            after = answer["last"]
            if answer["failed"]:
                failed.append(answer["failed"])
                assert answer["failure"].startswith("23503 ")
            if answer["done"]:
                break
        assert sum(failed) == 3
        assert outbox.events() == held
    if rows > 7:
        # A chunk of deliveries may go before its event is found to be held.
        assert outbox.deliveries() == 6


def test_E7_what_fails_alone_costs_few_tries(own):
    events = [own.event("succeeded", age=OLD - n) for n in range(256)]
    refer(own, events[100])
    own.sql("CREATE SEQUENCE public.tries")
    own.sql(
        "CREATE FUNCTION public.count() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN PERFORM nextval('public.tries'); RETURN NULL; END $$"
    )
    own.sql(
        "CREATE TRIGGER tries AFTER DELETE ON {event} FOR EACH STATEMENT"
        " EXECUTE FUNCTION public.count()"
    )
    assert own.limited("default_window")["events"] == 255
    before = own.one("SELECT last_value FROM public.tries")
    assert before <= 2 * 8 + 2
    own.prune()
    assert own.one("SELECT last_value FROM public.tries") <= before + 2


def test_E7_a_trigger_that_refuses_one_event(outbox):
    kept, gone = (outbox.event("succeeded", age=OLD + n) for n in (1, 0))
    refuse(outbox, f"OLD.id = {kept}", "not this one")
    answer = outbox.limited("default_window")
    assert (answer["events"], answer["failed"]) == (1, 1)
    assert answer["failure"] == "P0001 not this one"
    assert outbox.events() == {kept} and outbox.deliveries() == 1
    assert gone not in outbox.events()


@pytest.fixture
def crowded(own):
    """More events that something holds on to than a step takes, and one behind them."""
    own.sql(
        "INSERT INTO {event} (name, recorded_at) SELECT 'held', %s::timestamptz"
        " - interval '200 days' + n * interval '1 s' FROM generate_series(1, 520) AS n",
        own.now,
    )
    refer(own, *own.events())
    return own.event("succeeded", age=OLD)


def test_E7_a_crowd_that_fails_costs_each_step_little(own, crowded):
    after = None
    failed = []
    while not failed or not answer["done"]:
        answer = own.limited("default_window", after=after)
        after = answer["last"]
        failed.append(answer["failed"])
        assert not answer["failed"] or answer["failure"].startswith("23503 ")
    assert crowded not in own.events() and len(own.events()) == 520
    assert sum(failed) == 520 and max(failed) == 64


def test_E7_a_crowd_that_fails_stops_no_procedure(own, crowded):
    own.sql("CALL outbox.prune_events_v1(%s, 5000, NULL)", WINDOW)
    assert crowded not in own.events() and len(own.events()) == 520


def test_E7_a_crowd_that_fails_stops_no_cycle(event_db, own, crowded):
    with qret.Context(event_db.dsn, engines="event", event_prune_interval_ms=0) as library:
        report = library.try_cycle()[1]
    assert report["outcome"] == qret_types.PARTIAL
    assert (report["events_deleted"], report["items_failed"]) == (1, 520)


def test_E7_what_refuses_everything_costs_each_run_little(event_db, own):
    """And what is behind it goes all the same, with a later run."""
    own.sql(
        "INSERT INTO {event} (name, recorded_at) SELECT 'held', %s::timestamptz"
        " - interval '200 days' + n * interval '1 s' FROM generate_series(1, 2000) AS n",
        own.now,
    )
    own.event(age=OLD)
    refuse(own, "OLD.name = 'held'", "not this one")
    with qret.Context(event_db.dsn, engines="event", event_prune_interval_ms=0) as library:
        report = library.try_cycle()[1]
        assert (report["events_deleted"], report["items_failed"]) == (1, 2000)
        behind = own.event(age=OLD)
        report = library.try_cycle()[1]
        assert (report["events_deleted"], report["items_failed"]) == (0, 20 * 64)
        report = library.try_cycle()[1]
        assert (report["events_deleted"], report["items_failed"]) == (1, 2000 - 20 * 64)
        assert behind not in own.events() and len(own.events()) == 2000


def test_E7_a_crowd_that_fails_stops_nobody_who_steps_by_hand(event_db, own, crowded):
    with qret.Context(event_db.dsn, engines="event") as library:
        for _ in range(12):
            library.step(qret_types.PHASE_EVENT_PRUNE)
    assert crowded not in own.events() and len(own.events()) == 520


def test_E7_an_oversize_event_that_fails_stops_nobody(outbox):
    big = outbox.event(age=OLD + 1)
    outbox.fan_out(big, 30)
    small = outbox.event("succeeded", age=OLD)
    refuse(outbox, f"OLD.event_id = {big}", table="{delivery}")
    answers = outbox.drain("default_window", rows=10)
    assert sum(answer["events"] for answer in answers) == 1
    assert outbox.events() == {big} and small not in outbox.events()


def test_E6_the_library_tells_of_events_that_fail(event_db, own):
    events = [own.event("succeeded", age=OLD - n) for n in range(10)]
    refer(own, events[3])
    with qret.Context(event_db.dsn, engines="event", event_prune_interval_ms=0) as library:
        for went in (9, 0):
            report = library.try_cycle()[1]
            assert report["outcome"] == qret_types.PARTIAL
            assert (report["events_deleted"], report["items_failed"]) == (went, 1)
            assert library.lib.qret_error_sqlstate(library.handle) == b"23503"
    assert own.events() == {events[3]}


def test_E6_a_limit_bounds_events_and_not_transactions(event_db, own):
    """Two events with twenty deliveries each go in one transaction; enough is enough."""
    for n in range(5):
        own.fan_out(own.event(age=OLD - n), 20)
    with qret.Context(
        event_db.dsn, engines="event", event_prune_interval_ms=0, event_prune_limit=2
    ) as library:
        for outcome, went in ((qret_types.BUDGET, 2), (qret_types.BUDGET, 2), (qret_types.DONE, 1), (qret_types.DONE, 0)):
            report = library.try_cycle()[1]
            assert (report["outcome"], report["events_deleted"]) == (outcome, went)
            assert report["deliveries_deleted"] == 20 * went
            assert report["steps"] <= 5
        for n in range(2):
            own.event("succeeded", age=OLD - n)
        report = library.try_cycle()[1]
        assert (report["outcome"], report["events_deleted"]) == (qret_types.DONE, 2)


@pytest.mark.parametrize("arm, form", zip(ARMS, ("succeeded", "settled", 60, None)))
def test_E7_no_events_at_all_is_only_a_look(outbox, arm, form):
    assert outbox.limited(arm, most=0)["done"]
    window = {"window": form} if form == 60 else {"policy": form or ""}
    outbox.event("succeeded", "pending", age=OLD, **window)
    assert outbox.limited(arm, most=0)["done"]
    outbox.fan_out(outbox.event("succeeded", age=OLD, **window), 20)
    answer = outbox.limited(arm, most=0, rows=5)
    assert (answer["done"], answer["events"], answer["deliveries"]) == (False, 0, 0)
    assert len(outbox.events()) == 2 and outbox.deliveries() == 23


def test_E9_unknown_statuses_and_policies_are_told(outbox):
    """Such a delivery is owed for ever; such an event waits for the default window."""
    owed = outbox.event("succeeded", "unheard-of", age=OLD)
    young = outbox.event("succeeded", policy="someday", age=DAY)
    outbox.event("succeeded", policy="tomorrow", age=OLD)
    outbox.event("succeeded", policy="zzz", age=DAY)
    outbox.event("dead", policy="succeeded", age=DAY)
    answers = {arm: outbox.limited(arm) for arm in ARMS}
    assert {arm: answer["unknown"] for arm, answer in answers.items()} == {
        "succeeded": 0, "settled": 1, "own_window": 0, "default_window": 3,
    }
    assert all(answer["poison"] == 0 for answer in answers.values())
    assert {owed, young} <= outbox.events() and len(outbox.events()) == 4


def test_E9_the_library_tells_of_unknown_rows(event_db, own):
    own.event("succeeded", "unheard-of", age=OLD)
    own.event("succeeded", policy="someday", age=DAY)
    with qret.Context(event_db.dsn, engines="event", event_prune_interval_ms=0) as library:
        report = library.cycle()
    assert (report["rows_poison"], report["events_deleted"]) == (2, 0)
    assert len(library.events("poison")) == 1


def test_E1_a_status_that_is_null_is_owed(outbox):
    outbox.sql("ALTER TABLE {delivery} ALTER COLUMN status DROP NOT NULL")
    forms = ({}, {"window": 60}, {"policy": "succeeded"}, {"policy": "settled"})
    held = {outbox.event("succeeded", None, age=OLD, **form) for form in forms}
    free = {outbox.event("succeeded", "cancelled", age=OLD, **form) for form in forms}
    big = outbox.event(None, age=OLD)
    outbox.fan_out(big, 30)
    assert outbox.pruned(rows=10) == free
    assert outbox.pruned() == set()
    assert outbox.events() == held | {big}
    assert outbox.deliveries() <= 2 * len(held) + 31


def test_E7_an_event_whose_policy_changed_is_not_skipped(outbox):
    """It is not due any more: nobody is to come back for it."""
    event = outbox.event("succeeded", policy="settled")
    outbox.sql("UPDATE {event} SET delete_when = '' WHERE id = %s", event)
    batch = outbox.sql(
        "SELECT events, skipped FROM {schema}.event_prune_batch_v1('settled', %s, %s, %s, 10)",
        outbox.now, outbox.now, [event],
    )
    assert batch == [(0, 0)]


def test_E7_counts_are_what_was_deleted(outbox):
    """A trigger of the host's that keeps a row quietly is not counted as a row that went."""
    events = [outbox.event("succeeded", age=OLD - n) for n in range(3)]
    outbox.sql(
        "CREATE FUNCTION public.keep() RETURNS trigger LANGUAGE plpgsql AS"
        f" $$ BEGIN IF OLD.id = {events[1]} THEN RETURN NULL; END IF; RETURN OLD; END $$"
    )
    outbox.sql(
        "CREATE TRIGGER keep BEFORE DELETE ON {event} FOR EACH ROW EXECUTE FUNCTION public.keep()"
    )
    answer = outbox.limited("default_window")
    assert (answer["events"], answer["deliveries"], answer["failed"]) == (2, 2, 1)
    assert answer["failure"].startswith("27000 ")
    assert outbox.events() == {events[1]} and outbox.deliveries() == 1


@pytest.mark.parametrize("rows", [5000, 3])
def test_E7_a_delivery_that_a_trigger_keeps_keeps_its_event(outbox, rows):
    """On our own tables its event would go all the same, and leave it behind."""
    events = [outbox.event(age=OLD - n) for n in range(3)]
    for event in events:
        outbox.fan_out(event, 4)
    outbox.sql(
        "CREATE FUNCTION public.keep() RETURNS trigger LANGUAGE plpgsql AS"
        f" $$ BEGIN IF OLD.event_id = {events[1]} AND OLD.receiver_key = 'fan2' THEN RETURN NULL;"
        " END IF; RETURN OLD; END $$"
    )
    outbox.sql(
        "CREATE TRIGGER keep BEFORE DELETE ON {delivery} FOR EACH ROW"
        " EXECUTE FUNCTION public.keep()"
    )
    failed, after, done = 0, None, False
    while not done:
        answer = outbox.limited("default_window", rows=rows, after=after)
        after, done = answer["last"], answer["done"]
        failed += answer["failed"]
        assert not answer["failed"] or answer["failure"].startswith("27000 ")
    assert failed == 1
    assert outbox.events() == {events[1]} and outbox.deliveries() == 4


def test_E8_recording_is_for_our_own_tables(django):
    found = "SELECT to_regproc('outbox.record_event_v1') IS NOT NULL"
    assert not django.one(found)
