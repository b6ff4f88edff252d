"""E2 and E7: how much a step deletes at most, fan-outs in chunks, and what it reports."""

import pytest

from event.outbox import DAY, WINDOW

OLD = WINDOW + DAY


@pytest.mark.parametrize("rows", [1, 2, 3, 7, 10, 50])
def test_E2_a_step_deletes_at_most_so_many_rows(own, rows):
    for count in (0, 1, 2, 6, 0, 9, 3, 12):
        own.fan_out(own.event(age=OLD), count)
    for answer in own.drain("default_window", rows=rows):
        assert answer["events"] + answer["deliveries"] <= rows
    assert own.events() == set()
    assert own.deliveries() == 0


def test_E2_a_step_deletes_at_most_500_events(own):
    own.sql(
        "INSERT INTO {event} (name, recorded_at) SELECT 'e', %s::timestamptz - interval '100 days'"
        " FROM generate_series(1, 1200)",
        own.now,
    )
    assert [answer["events"] for answer in own.drain("default_window")] == [500, 500, 200]


def test_E2_an_event_that_just_fits_goes_whole(own):
    own.fan_out(own.event(age=OLD), 9)
    answer = own.step("default_window", rows=10)
    assert (answer["events"], answer["deliveries"], answer["oversize"]) == (1, 9, 0)


def test_E2_an_event_that_just_does_not_fit_is_chunked(own):
    own.fan_out(own.event(age=OLD), 10)
    answers = own.drain("default_window", rows=10)
    assert [(a["events"], a["deliveries"]) for a in answers[:2]] == [(0, 10), (1, 0)]
    assert sum(a["oversize"] for a in answers) == 1


def test_E2_a_fan_out_of_20000_goes_in_chunks(outbox):
    event = outbox.event(age=OLD)
    outbox.fan_out(event, 20000)
    other = outbox.event("succeeded", age=OLD - 1)
    answers = outbox.drain("default_window")
    assert [(a["events"], a["deliveries"]) for a in answers[:5]] == [
        (0, 5000),
        (0, 5000),
        (0, 5000),
        (0, 5000),
        (2, 1),
    ]
    assert sum(a["oversize"] for a in answers) == 1
    assert not {event, other} & outbox.events()


def test_E2_a_replay_between_two_chunks_keeps_what_is_left(outbox):
    event = outbox.event(age=OLD)
    outbox.fan_out(event, 100)
    answer = outbox.step("default_window", rows=30)
    assert answer["deliveries"] == 30
    outbox.sql(
        "UPDATE {delivery} SET status = 'pending' WHERE id = (SELECT max(id) FROM {delivery})"
    )
    answers = outbox.drain("default_window", rows=30, after=answer["last"])
    assert sum(a["deliveries"] for a in answers) == 0
    assert outbox.events() == {event}
    assert outbox.deliveries() == 70


def test_E2_a_chunk_beside_an_uncommitted_replay_is_skipped(outbox):
    event = outbox.event(age=OLD)
    outbox.fan_out(event, 10)
    with outbox.db.connect(autocommit=False).cursor() as other:
        other.execute(outbox.named("UPDATE {delivery} SET status = 'pending'"))
        answer = outbox.step("default_window", rows=4)
        assert (answer["deliveries"], answer["skipped"], answer["oversize"]) == (0, 1, 0)
        other.connection.commit()
    assert outbox.pruned(rows=4) == set()
    assert outbox.deliveries(event) == 10


@pytest.mark.parametrize("rows", [None, 0, -5])
def test_E2_rows_below_one_count_as_one(own, rows):
    own.event(age=OLD)
    own.event(age=OLD)
    assert own.step("default_window", rows=rows)["events"] == 1


def test_E2_rows_without_measure(own):
    own.fan_out(own.event(age=OLD), 50)
    assert own.step("default_window", rows=2147483647)["deliveries"] == 50


def test_E7_a_locked_event_is_skipped_counted_and_goes_later(outbox):
    ids = [outbox.event("succeeded", age=OLD - n) for n in range(20)]
    with outbox.db.connect(autocommit=False).cursor() as other:
        other.execute(outbox.named("SELECT FROM {event} WHERE id = %s FOR UPDATE"), (ids[3],))
        other.execute(
            outbox.named("SELECT FROM {delivery} WHERE event_id = %s FOR UPDATE"), (ids[11],)
        )
        answer = outbox.step("default_window")
        assert (answer["events"], answer["deliveries"], answer["skipped"]) == (18, 18, 2)
        assert not answer["done"]
        assert outbox.step("default_window", after=answer["last"])["done"]
        other.connection.rollback()
    assert outbox.pruned() == {ids[3], ids[11]}


def test_E7_an_idle_step_writes_nothing(outbox):
    outbox.event("succeeded")
    outbox.event("dead", policy="succeeded")
    with outbox.db.connect(autocommit=False).cursor() as cursor:
        for arm in ("succeeded", "settled", "own_window", "default_window"):
            cursor.execute(
                "SELECT outbox.event_prune_step_v1(%s, now(), %s, 5000)", (arm, WINDOW)
            )
        cursor.execute("SELECT pg_current_xact_id_if_assigned()")
        assert cursor.fetchone()[0] is None


def test_E7_result_keys(own):
    assert set(own.step("settled")) == {
        "events",
        "deliveries",
        "skipped",
        "oversize",
        "poison",
        "last",
        "done",
    }


def test_B22_no_statement_deletes_more_than_its_share(own):
    # The cascade of our own foreign key has nothing left to take.
    own.fan_out(own.event(age=OLD), 60)
    own.sql("CREATE TABLE public.taken (statement bigint, rows bigint)")
    own.sql(
        "CREATE FUNCTION public.note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " INSERT INTO public.taken SELECT txid_current(), count(*) FROM gone; RETURN NULL; END $$"
    )
    own.sql(
        "CREATE TRIGGER note AFTER DELETE ON {delivery} REFERENCING OLD TABLE AS gone"
        " FOR EACH STATEMENT EXECUTE FUNCTION public.note()"
    )
    own.drain("default_window", rows=25)
    rows = own.sql("SELECT statement, sum(rows) FROM public.taken GROUP BY statement")
    assert [int(row[1]) for row in sorted(rows)] == [25, 25, 10]
