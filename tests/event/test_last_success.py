"""E3: the newest success of each receiver outlives its deliveries, and only moves forwards."""

import threading
from datetime import timedelta

import psycopg2
import pytest

from event.outbox import DAY, WINDOW

OLD = WINDOW + DAY


def test_E3_the_newest_success_is_kept(outbox):
    days = [timedelta(days=n) for n in range(10)]
    for n in (3, 1, 2):
        event = outbox.event(age=OLD)
        outbox.delivery(event, "succeeded", "a", outbox.now - days[n])
        outbox.delivery(event, "dead", "b", outbox.now - days[n + 4])
        outbox.delivery(event, "dead", "never")
    outbox.prune()
    assert outbox.last_successes() == {"a": outbox.now - days[1], "b": outbox.now - days[5]}


def test_E3_never_backwards(outbox):
    recent = outbox.now - timedelta(hours=1)
    outbox.sql("INSERT INTO {success} (receiver_key, last_succeeded_at) VALUES ('a', %s)", recent)
    outbox.delivery(outbox.event(age=OLD), "succeeded", "a", outbox.now - timedelta(days=3))
    assert len(outbox.pruned()) == 1
    assert outbox.last_successes() == {"a": recent}


def test_E3_a_chunk_keeps_it_too(outbox):
    event = outbox.event(age=OLD)
    for n in range(10):
        outbox.sql(
            "INSERT INTO {delivery} (event_id, receiver_key, target, target_digest, status,"
            " succeeded_at) VALUES (%s, 'a', %s, %s, 'succeeded', %s)",
            event,
            str(n),
            str(n),
            outbox.now - timedelta(hours=n),
        )
    outbox.prune(rows=3)
    assert outbox.last_successes() == {"a": outbox.now}


def test_E3_is_undone_with_the_delete(outbox):
    event = outbox.event("succeeded", age=OLD)
    with outbox.db.connect(autocommit=False).cursor() as cursor:
        cursor.execute(
            "SELECT outbox.event_prune_step_v1('default_window', %s, %s, 10)", (outbox.now, WINDOW)
        )
        cursor.connection.rollback()
    assert outbox.events() == {event}
    assert outbox.last_successes() == {}


@pytest.mark.parametrize("moment", ["infinity", "-infinity", "290000-01-01"])
def test_E3_a_success_beyond_all_dates_is_nobodys_newest(outbox, moment):
    event = outbox.event(age=OLD)
    outbox.delivery(event, "succeeded", "a", moment)
    outbox.sql(
        "INSERT INTO {delivery} (event_id, receiver_key, target, target_digest, status,"
        " succeeded_at) VALUES (%s, 'a', 't', 't', 'succeeded', %s)",
        event,
        outbox.now,
    )
    outbox.prune()
    assert outbox.last_successes() == {"a": outbox.now}


def test_E3_a_receiver_that_is_up_to_date_is_not_written(own):
    own.sql(
        "INSERT INTO {success} (receiver_key, last_succeeded_at) VALUES ('r1', %s)",
        own.now + timedelta(days=1),
    )
    before = own.one("SELECT xmin::text || ctid::text FROM {success}")
    own.event("succeeded", age=OLD)
    own.prune()
    assert own.one("SELECT xmin::text || ctid::text FROM {success}") == before


def test_E3_a_prune_of_another_make_is_yielded_to(own):
    touch = "UPDATE {success} SET last_succeeded_at = now() WHERE receiver_key = %s"
    own.event("succeeded", "succeeded", age=OLD)
    own.sql(
        "INSERT INTO {success} (receiver_key, last_succeeded_at)"
        " VALUES ('r1', '2001-01-01'), ('r2', '2001-01-01')"
    )
    with own.db.connect(autocommit=False).cursor() as other:
        other.execute(own.named(touch), ("r2",))
        began = own.one("SELECT clock_timestamp()")
        answer = own.step("default_window")
        assert (answer["events"], answer["skipped"]) == (0, 1)
        waited = own.one("SELECT clock_timestamp()") - began
        assert waited < timedelta(seconds=1)
        # It held r1 meanwhile, and has let it go: the other prune can finish.
        other.execute(own.named(touch), ("r1",))
        other.connection.commit()
    assert own.deliveries() == 2
    assert len(own.pruned()) == 1


def test_E3_waits_less_where_deadlocks_are_looked_for_sooner(own):
    own.event("succeeded", age=OLD)
    own.sql("INSERT INTO {success} (receiver_key, last_succeeded_at) VALUES ('r1', '2001-01-01')")
    own.sql("SET deadlock_timeout = '50ms'")
    own.sql("SET log_lock_waits = off")
    with own.db.connect(autocommit=False).cursor() as other:
        other.execute(own.named("UPDATE {success} SET last_succeeded_at = now()"))
        answer = own.step("default_window")
        assert (answer["events"], answer["skipped"]) == (0, 1)
    assert own.one("SELECT current_setting('lock_timeout')") == "0"


def test_E3_the_sessions_lock_timeout_is_put_back(own):
    own.event("succeeded", age=OLD)
    with own.db.connect(autocommit=False).cursor() as cursor:
        cursor.execute("SET LOCAL lock_timeout = '3210ms'")
        cursor.execute(
            "SELECT outbox.event_prune_step_v1('default_window', %s, %s, 10)", (own.now, WINDOW)
        )
        assert cursor.fetchone()[0]["events"] == 1
        cursor.execute("SHOW lock_timeout")
        assert cursor.fetchone()[0] == "3210ms"


def test_B41_receivers_in_any_order_do_not_deadlock(own):
    own.sql(
        "INSERT INTO {event} (name, recorded_at)"
        " SELECT 'e', %s::timestamptz - interval '100 days' - n * interval '1 s'"
        " FROM generate_series(1, 1500) AS n",
        own.now,
    )
    own.sql(
        "INSERT INTO {delivery} (event_id, receiver_key, status, succeeded_at)"
        " SELECT e.id, 'r' || k, 'succeeded', clock_timestamp() FROM {event} AS e,"
        " LATERAL (SELECT k FROM generate_series(1, 40) AS k WHERE e.id > 0"
        " ORDER BY random() LIMIT 4) AS r"
    )
    failures = []

    def drain(rows):
        with own.db.connect().cursor() as cursor:
            after, misses = None, 0
            while misses < 200:
                try:
                    cursor.execute(
                        "SELECT outbox.event_prune_step_v1('default_window', %s, %s, %s, %s)",
                        (own.now, WINDOW, rows, after),
                    )
                except psycopg2.errors.LockNotAvailable:
                    misses += 1
                    continue
                except psycopg2.Error as error:
                    failures.append(error)
                    return
                answer = cursor.fetchone()[0]
                after = answer["last"]
                if answer["done"]:
                    return

    threads = [threading.Thread(target=drain, args=(rows,)) for rows in (20, 33, 47, 80)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    own.prune()
    assert own.events() == set()
    assert len(own.last_successes()) == 40
