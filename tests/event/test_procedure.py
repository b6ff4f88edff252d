"""prune_events_v1: the whole prune for who has SQL alone."""

import re

import psycopg2
import pytest

from event.outbox import DAY, WINDOW

OLD = WINDOW + DAY


def call(outbox, window=WINDOW, rows=5000, limit=None, connection=None):
    """Returns the numbers of its notice: all, by arm, deliveries, skipped, oversize, poison."""
    connection = connection or outbox.db.connect()
    with connection.cursor() as cursor:
        cursor.execute("CALL outbox.prune_events_v1(%s, %s, %s)", (window, rows, limit))
    return [int(number) for number in re.findall(r"\d+", connection.notices[-1])]


def fill(outbox):
    outbox.event("succeeded", policy="succeeded")
    outbox.event("succeeded", "dead", policy="settled")
    outbox.event("succeeded", age=120, window=60)
    outbox.event("succeeded", age=OLD)
    outbox.fan_out(outbox.event(age=OLD), 25)
    return outbox.event("succeeded", "pending", age=OLD)


def test_procedure_runs_every_arm(outbox):
    kept = fill(outbox)
    assert call(outbox, rows=10) == [5, 1, 1, 1, 2, 30, 0, 1, 0, 0, 0]
    assert outbox.events() == {kept}


def test_procedure_commits_each_step(own):
    fill(own)
    own.sql("CREATE TABLE public.seen (transaction bigint, events bigint)")
    own.sql(
        "CREATE FUNCTION public.note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " INSERT INTO public.seen VALUES (txid_current(), 1); RETURN OLD; END $$"
    )
    own.sql(
        "CREATE TRIGGER note BEFORE DELETE ON {event} FOR EACH ROW EXECUTE FUNCTION public.note()"
    )
    call(own, rows=10)
    assert own.one("SELECT count(DISTINCT transaction) FROM public.seen") == 5


@pytest.mark.parametrize("limit, left", [(1, 699), (250, 450), (600, 100), (0, 0), (None, 0)])
def test_procedure_limit_counts_events(own, limit, left):
    own.sql(
        "INSERT INTO {event} (name, recorded_at) SELECT 'e', now() - interval '100 days'"
        " FROM generate_series(1, 700)"
    )
    call(own, limit=limit)
    assert len(own.events()) == left


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_B73_procedure_sets_its_own_isolation(outbox, level):
    kept = fill(outbox)
    connection = outbox.db.connect()
    with connection.cursor() as cursor:
        cursor.execute(f"SET default_transaction_isolation = '{level}'")
    call(outbox, connection=connection)
    assert outbox.events() == {kept}


def test_procedure_refuses(own):
    for arguments in ({"window": -1}, {"limit": -1}):
        with pytest.raises(psycopg2.errors.InvalidParameterValue):
            call(own, **arguments)
    connection = own.db.connect(autocommit=False)
    with pytest.raises(psycopg2.errors.InvalidTransactionTermination):
        call(own, connection=connection)


def test_procedure_goes_past_a_lock_that_is_held(own):
    own.event("succeeded", age=OLD)
    free = own.event("dead", age=OLD, window=60)
    own.sql("INSERT INTO {success} (receiver_key, last_succeeded_at) VALUES ('r1', '2001-01-01')")
    other = own.db.connect(autocommit=False)
    with other.cursor() as cursor:
        cursor.execute(own.named("SELECT FROM {success} FOR UPDATE"))
        connection = own.db.connect()
        call(own, connection=connection)
        assert any("default_window" in notice for notice in connection.notices)
        assert free not in own.events() and len(own.events()) == 1
        other.rollback()
    call(own)
    assert own.events() == set()


def test_procedure_says_nothing_of_a_lock_that_was_let_go_in_time(own):
    """What a first try waited for in vain, a later one of the same step has had."""
    for age in (OLD + 1, OLD):
        own.event("succeeded", age=age)
    own.sql("CREATE SEQUENCE public.tries")
    own.sql(
        "CREATE FUNCTION public.once() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " IF nextval('public.tries') = 1 THEN"
        " RAISE 'busy' USING ERRCODE = 'lock_not_available'; END IF; RETURN OLD; END $$"
    )
    own.sql(
        "CREATE TRIGGER once BEFORE DELETE ON {event} FOR EACH ROW EXECUTE FUNCTION public.once()"
    )
    connection = own.db.connect()
    assert call(own, connection=connection)[0] == 2
    assert own.one("SELECT last_value FROM public.tries") == 3
    assert not [notice for notice in connection.notices if notice.startswith("WARNING")]


def test_B77_procedure_under_a_hostile_search_path(own):
    kept = fill(own)
    own.sql("CREATE SCHEMA evil")
    own.sql(
        "CREATE FUNCTION evil.now() RETURNS timestamptz LANGUAGE sql AS"
        " $$ SELECT 'infinity'::timestamptz $$"
    )
    own.sql(
        "CREATE FUNCTION evil.less(timestamptz, timestamptz) RETURNS boolean LANGUAGE sql AS"
        " $$ SELECT true $$"
    )
    own.sql(
        "CREATE OPERATOR evil.< (LEFTARG = timestamptz, RIGHTARG = timestamptz,"
        " FUNCTION = evil.less)"
    )
    young = own.event("succeeded")
    connection = own.db.connect()
    with connection.cursor() as cursor:
        cursor.execute("SET search_path = evil, pg_catalog")
        cursor.execute("CREATE TEMP TABLE event (id bigint)")
        cursor.execute("CREATE TEMP TABLE delivery (id bigint)")
    call(own, connection=connection)
    assert own.events() == {kept, young}
