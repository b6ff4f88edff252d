"""Random interleavings of a prune with what an application does to the same events.

One thread drives everything, so a seed is a schedule: the prune's functions are installed with a
halt before each of their statements, and between two halts the writers' transactions begin, work,
wait, commit or roll back. Nothing here knows how the prune protects itself; the check knows only what
the writers committed.
"""

import random
import select
import time

import psycopg2
from psycopg2 import extensions

from event.outbox import DAY, OWED, TERMINAL, WINDOW
from pg import install

BATCH = "event_prune_batch_v1"
CAREFUL = "event_prune_careful_v1"
CHUNK = "event_prune_chunk_v1"
HOLD = "event_prune_hold_v1"
LOCK = "event_prune_lock_v1"
TAKE = "event_prune_take_v1"

# The beginning of each statement, and of each call that is one, of the functions that decide.
HALTS = {
    BATCH: (
        "    v_events := ",
        "    SELECT t.* INTO v_there",
        "    BEGIN\n",
        "        SELECT c.* INTO v_gone",
        "    DELETE FROM @event_table@",
        "    PERFORM @event@.event_prune_success_v1",
    ),
    CAREFUL: (
        "    SELECT h.ids, h.events, h.terminal",
        "    SELECT\n        COALESCE(array_agg(e.id)",
        "    v_held := ",
        "    SELECT d.deliveries, d.receivers",
    ),
    CHUNK: (
        "    IF cardinality(@event@.event_prune_lock_v1",
        "    v_chunk := ",
        "    v_held := ",
        "    IF EXISTS (",
        "    SELECT d.deliveries, d.receivers",
        "    PERFORM @event@.event_prune_success_v1",
    ),
    LOCK: (),
    HOLD: (),
    TAKE: (),
}
FUNCTIONS = tuple(HALTS)
EVENTS = 3
GATE = 7_370_000

SCHEMA = """
CREATE SCHEMA fire;
CREATE TABLE fire.ledger (id bigserial, delivery_id bigint, event_id bigint, status text);
CREATE FUNCTION fire.halt() RETURNS void LANGUAGE plpgsql SET lock_timeout = 0 AS $$
BEGIN
    PERFORM pg_advisory_lock(%d);
    PERFORM pg_advisory_unlock(%d);
END $$;
""" % (GATE, GATE)

LEDGER = (
    "WITH w AS (%s RETURNING id, event_id, status)"
    " INSERT INTO fire.ledger (delivery_id, event_id, status)"
    " SELECT id, event_id, status FROM w"
)
REPLAY = LEDGER % (
    "UPDATE {delivery} SET status = 'pending', attempts = 0 WHERE event_id = %s"
    " AND status IN ('succeeded', 'dead', 'orphaned', 'cancelled')"
)
REPLAY_ONE = LEDGER % (
    "UPDATE {delivery} SET status = 'pending', attempts = 0 WHERE id = ("
    " SELECT max(id) FROM {delivery} WHERE event_id = %s"
    " AND status IN ('succeeded', 'dead', 'orphaned', 'cancelled'))"
)
REQUEUE = LEDGER % (
    "UPDATE {delivery} SET status = 'failed', attempts = 0"
    " WHERE event_id = %s AND status = 'dead'"
)
NEW = LEDGER % (
    "INSERT INTO {delivery} (event_id, receiver_key, status) VALUES (%s, 'new', 'pending')"
)
CLAIM = LEDGER % (
    "UPDATE {delivery} SET status = 'claimed' WHERE id IN (SELECT id FROM {delivery}"
    " WHERE event_id = %s AND status IN ('pending', 'failed') ORDER BY id"
    " FOR UPDATE SKIP LOCKED)"
)
FINISH = LEDGER % (
    "UPDATE {delivery} SET status = 'succeeded', succeeded_at = now()"
    " WHERE event_id = %s AND status IN ('pending', 'claimed', 'failed')"
)
OPERATIONS = (REPLAY, REPLAY_ONE, REPLAY_ONE, REQUEUE, NEW, NEW, CLAIM, FINISH)

LOST = """
SELECT l.delivery_id, l.event_id, l.status, d.status
FROM (
    SELECT DISTINCT ON (delivery_id) delivery_id, event_id, status
    FROM fire.ledger ORDER BY delivery_id, id DESC
) AS l
LEFT JOIN {delivery} AS d ON d.id = l.delivery_id
WHERE (l.status IN ('pending', 'failed', 'claimed') AND d.id IS NULL)
    OR (d.id IS NOT NULL AND d.status <> l.status)
    OR (d.id IS NOT NULL AND NOT EXISTS (SELECT FROM {event} AS e WHERE e.id = d.event_id))
"""


def source(outbox, function, mutate=None, halts=None):
    """The installed text of a prune function, with halts, and changed by mutate(text)."""
    path = f"{install.SQL}/event/prune/{function}.sql"
    tables = {}
    if outbox.event_table.startswith("public."):
        tables = {
            "event_table": outbox.event_table,
            "delivery_table": outbox.delivery_table,
            "success_table": outbox.success_table,
        }
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if mutate is not None:
        text = mutate(text)
    for start in HALTS[function] if halts is None else halts:
        assert text.count(f"\n{start}") in (0, 1), start
        text = text.replace(f"\n{start}", f"\n    PERFORM fire.halt();\n{start}")
    return install.substitute(text, install.tokens(**tables))


class Actor:
    """A connection of its own, asynchronous, so that one thread can leave it waiting."""

    def __init__(self, dsn):
        self.connection = psycopg2.connect(dsn, async_=1)
        self._until(lambda: False)
        self.cursor = self.connection.cursor()
        self.pid = self.connection.get_backend_pid()
        self.error = None
        self.busy = False

    def send(self, text, *args):
        assert not self.busy
        self.error = None
        self.busy = True
        self.cursor.execute(text, args or None)

    def _poll(self):
        """True when nothing is outstanding."""
        try:
            state = self.connection.poll()
        except psycopg2.Error as error:
            self.error = error
            return True
        return state == extensions.POLL_OK

    def _until(self, stop, pause=0.0005):
        while not self._poll():
            if stop():
                return False
            select.select([self.connection.fileno()], [], [], pause)
        return True

    def finish(self):
        self._until(lambda: False)
        self.busy = False

    def run(self, text, *args):
        self.send(text, *args)
        self.finish()

    def settle(self, waits):
        """Goes on until the statement has ended or waits for a lock. True where it has ended."""
        if self._until(lambda: waits(self.pid)):
            self.busy = False
        return not self.busy

    def close(self):
        self.connection.close()


class Writer:
    """One transaction: begins at one point of the schedule, ends at a later one."""

    def __init__(self, rng, actor, events):
        self.actor = actor
        self.event = rng.choice(events)
        self.operation = rng.choice(OPERATIONS)
        self.begin = rng.randint(0, 8)
        self.end = rng.choice([self.begin, self.begin + 1, rng.randint(self.begin, 9), 9])
        self.commit = rng.random() < 0.85
        self.ending = False

    def start(self, outbox, waits):
        self.actor.run("BEGIN")
        self.actor.send(outbox.named(self.operation), self.event)
        self.actor.settle(waits)

    def stop(self, waits):
        """Ends the transaction, unless what it asked for is still waiting."""
        if self.ending or not self.actor.settle(waits):
            return
        self.ending = True
        good = self.commit and self.actor.error is None
        self.actor.send("COMMIT" if good else "ROLLBACK")
        self.actor.settle(waits)


class Fire:
    """Runs schedules on one outbox and looks for what was lost."""

    def __init__(self, outbox, mutations=None, rows=(5000, 5000, 4, 2)):
        self.outbox = outbox
        self.rows = rows
        outbox.sql(SCHEMA)
        for function in FUNCTIONS:
            outbox.db.sql(source(outbox, function, (mutations or {}).get(function)))
        self.pruner = Actor(outbox.db.dsn)
        self.gate = Actor(outbox.db.dsn)
        self.writers = [Actor(outbox.db.dsn) for _ in range(3)]
        for actor in (self.pruner, *self.writers):
            actor.run("SET deadlock_timeout = '20s'")
        self.gate.run("SELECT pg_advisory_lock(%s)", GATE)

    def close(self):
        for actor in (self.gate, self.pruner, *self.writers):
            actor.close()

    def waits(self, pid):
        """What kind of lock a backend waits for; None: for none."""
        return self.outbox.db.one(
            "SELECT locktype FROM pg_locks WHERE pid = %s AND NOT granted", pid
        )

    def populate(self, rng, arm):
        """A few events that are due unless something is owed on them."""
        outbox = self.outbox
        # Emptied so rather than truncated: a new file three times a schedule is most of its time.
        outbox.sql("DELETE FROM {delivery}; DELETE FROM {event}; DELETE FROM fire.ledger")
        form = {
            "succeeded": {"policy": "succeeded"},
            "settled": {"policy": "settled"},
            "own_window": {"window": 60},
            "default_window": {},
        }[arm]
        done = ("succeeded", "cancelled") if arm == "succeeded" else TERMINAL
        events = []
        for _ in range(EVENTS):
            statuses = rng.choices(done, k=rng.randint(0, 3))
            if rng.random() < 0.15:
                statuses.append(rng.choice(OWED))
            events.append(outbox.event(*statuses, age=WINDOW + DAY, **form))
        outbox.sql(
            "INSERT INTO fire.ledger (delivery_id, event_id, status)"
            " SELECT id, event_id, status FROM {delivery} ORDER BY id"
        )
        return events

    def advance(self):
        """Lets the prune go to its next halt. True while it is not at its end."""
        if not self.pruner.busy:
            return False
        if self.waits(self.pruner.pid) == "advisory":
            # It is next in the queue, and we are behind it: it passes one halt, not two.
            self.gate.run("SELECT pg_advisory_unlock(%s)", GATE)
            self.gate.run("SELECT pg_advisory_lock(%s)", GATE)
        return not self.pruner.settle(self.waits)

    def schedule(self, seed):
        """One interleaving. Returns the deliveries that were lost."""
        rng = random.Random(seed)
        arm = rng.choice(("succeeded", "settled", "own_window", "default_window"))
        rows = rng.choice(self.rows)
        events = self.populate(rng, arm)
        writers = [Writer(rng, actor, events) for actor in self.writers[: rng.randint(1, 3)]]
        began = False
        for point in range(10):
            for writer in writers:
                if writer.begin == point:
                    writer.start(self.outbox, self.waits)
            for writer in writers:
                if writer.begin <= point and writer.end <= point:
                    writer.stop(self.waits)
            if not began:
                began = True
                self.pruner.send(
                    "SELECT outbox.event_prune_step_v1(%s, %s, %s, %s)",
                    arm, self.outbox.now, WINDOW, rows,
                )
                self.pruner.settle(self.waits)
            else:
                self.advance()
        self._finish(writers)
        return self.outbox.sql(LOST)

    def _finish(self, writers):
        deadline = time.monotonic() + 10
        while True:
            running = self.advance()
            for writer in writers:
                writer.stop(self.waits)
            waiting = [writer for writer in writers if writer.actor.busy or not writer.ending]
            if not running and not waiting:
                return
            for writer in waiting:
                writer.actor.settle(self.waits)
            assert time.monotonic() < deadline, "the schedule does not end"
