"""E4, B12, B40, B42: any number of prunes beside each other, and beside writers."""

import threading
import time

import psycopg2
import pytest

from event.outbox import ARMS, DAY, WINDOW

BATCHES = (1, 7, 50, 333, 1000, 2500, 5000, 100000)


def fill(outbox, events):
    outbox.sql(
        "INSERT INTO {event} (name, recorded_at, delete_when, suppressed_reason)"
        " SELECT 'e', %s::timestamptz - interval '100 days' - n * interval '1 s',"
        " CASE n %% 3 WHEN 0 THEN 'succeeded' WHEN 1 THEN 'settled' ELSE '' END, ''"
        " FROM generate_series(1, %s) AS n",
        outbox.now,
        events,
    )
    outbox.sql(
        "INSERT INTO {delivery} (event_id, receiver_key, status, succeeded_at)"
        " SELECT e.id, 'r' || k, 'succeeded', %s FROM {event} AS e, generate_series(1, 4) AS k",
        outbox.now,
    )
    outbox.fan_out(outbox.event(age=WINDOW + DAY), 3000)


class Prune(threading.Thread):
    """A whole run, again and again until told that the backlog is gone; counts what it deleted."""

    def __init__(self, outbox, rows, gone):
        super().__init__()
        self.cursor = outbox.db.connect().cursor()
        self.outbox = outbox
        self.rows = rows
        self.gone = gone
        self.events = self.deliveries = self.yielded = 0
        self.error = None

    def run(self):
        try:
            while not self.gone.is_set():
                for arm in ARMS:
                    self._drain(arm)
        except psycopg2.Error as error:
            self.error = error

    def _drain(self, arm):
        after = None
        while not self.gone.is_set():
            try:
                self.cursor.execute(
                    "SELECT outbox.event_prune_step_v1(%s, %s, %s, %s, %s)",
                    (arm, self.outbox.now, WINDOW, self.rows, after),
                )
            except psycopg2.errors.LockNotAvailable:
                self.yielded += 1
                continue
            answer = self.cursor.fetchone()[0]
            self.events += answer["events"]
            self.deliveries += answer["deliveries"]
            after = answer["last"]
            if answer["done"]:
                return


def run_all(outbox, prunes, gone, seconds=60):
    deadline = time.monotonic() + seconds
    for prune in prunes:
        prune.start()
    while outbox.one("SELECT count(*) FROM {event}") and time.monotonic() < deadline:
        if all(not prune.is_alive() for prune in prunes):
            break
        time.sleep(0.02)
    gone.set()
    for prune in prunes:
        prune.join()


@pytest.mark.slow
def test_E4_eight_prunes_count_every_event_once(outbox):
    fill(outbox, 6000)
    events = outbox.one("SELECT count(*) FROM {event}")
    deliveries = outbox.deliveries()
    deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
    gone = threading.Event()
    prunes = [Prune(outbox, rows, gone) for rows in BATCHES]
    run_all(outbox, prunes, gone)
    assert [prune.error for prune in prunes] == [None] * 8
    assert outbox.events() == set()
    assert sum(prune.events for prune in prunes) == events
    assert sum(prune.deliveries for prune in prunes) == deliveries
    assert outbox.one(deadlocks) == 0
    assert len(outbox.last_successes()) == 3004


def test_B42_writers_go_on_beside_prunes(own):
    fill(own, 1500)
    gone = threading.Event()
    prunes = [Prune(own, rows, gone) for rows in (100, 400, 900, 5000)]
    recorded = []
    failures = []

    def write():
        with own.db.connect().cursor() as cursor:
            while not gone.is_set():
                try:
                    cursor.execute("SELECT outbox.record_event_v1('new', '{}', '{r1,r2}')")
                    recorded.append(cursor.fetchone()[0])
                except psycopg2.Error as error:
                    failures.append(error)
                time.sleep(0.002)

    writer = threading.Thread(target=write)
    writer.start()
    deadline = time.monotonic() + 60
    for prune in prunes:
        prune.start()
    while own.one("SELECT count(*) FROM {event} WHERE name = 'e'") and time.monotonic() < deadline:
        time.sleep(0.02)
    gone.set()
    for thread in (*prunes, writer):
        thread.join()
    assert failures == [] and [prune.error for prune in prunes] == [None] * 4
    assert recorded and own.events() == set(recorded)
    assert own.deliveries() == 2 * len(recorded)


@pytest.mark.parametrize("held", ["attempt", "audit"])
def test_E1_rows_behind_an_events_own_are_not_waited_for_long(outbox, held):
    """Somebody deletes what refers to an event or a delivery: it is he who goes on."""
    event = outbox.event("succeeded", age=WINDOW + DAY)
    outbox.sql(
        "CREATE TABLE public.attempt (delivery_id bigint REFERENCES {delivery} ON DELETE CASCADE)"
    )
    outbox.sql("CREATE TABLE public.audit (event_id bigint REFERENCES {event})")
    outbox.sql("INSERT INTO public.attempt SELECT id FROM {delivery}")
    outbox.sql("INSERT INTO public.audit VALUES (%s)", event)
    if held == "attempt":
        outbox.sql("DELETE FROM public.audit")
    other = outbox.db.connect(autocommit=False).cursor()
    other.execute("SET deadlock_timeout = '1s'")
    other.execute(f"DELETE FROM public.{held}")
    pruner = outbox.db.connect().cursor()
    answers = []

    def prune():
        pruner.execute(
            "SELECT outbox.event_prune_step_v1('default_window', %s, %s, 10)",
            (outbox.now, WINDOW),
        )
        answers.append(pruner.fetchone()[0])

    thread = threading.Thread(target=prune)
    thread.start()
    try:
        if held == "audit":
            # What our prune holds meanwhile, and what would make a deadlock of it.
            waits = "SELECT count(*) FROM pg_locks WHERE pid = %s AND NOT granted"
            while thread.is_alive():
                if outbox.one(waits, pruner.connection.get_backend_pid()):
                    break
            other.execute(outbox.named("UPDATE {delivery} SET attempts = attempts + 1"))
        thread.join(1)
        assert not thread.is_alive()
    finally:
        other.connection.commit()
        thread.join()
    assert [(answer["events"], answer["skipped"]) for answer in answers] == [(0, 1)]
    assert outbox.events() == {event}
    outbox.sql("DELETE FROM public.audit")
    assert outbox.pruned() == {event}
