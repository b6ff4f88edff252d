"""The library's part of mode `due`, in Python: the same statements, called in the same order.

It is no second implementation of the rules: what is due, and what a step deletes, is SQL's to say.
"""

from pg import install
from sql.log_support import client_statement

ZERO = "00000000-0000-0000-0000-000000000000"
CUTOFFS = ("all_cutoff", "completed_cutoff", "txns_cutoff", "max_wait_cutoff")
LIST = ("clock", "partition_id", "queue_id") + CUTOFFS
HINTS = ("hint_look", "hint_queues", "hint_policies", "hint_segments", "hint_txns")
# psycopg2 has no infinite dates, so what is only passed back travels as text.
AS_TEXT = {"partition_id", "queue_id", "filed_under", "last", *HINTS}
REFRESH_MOST = 250

STATEMENTS = {
    "worklist_scan": (("timestamptz", "uuid", "int4"), LIST),
    "worklist_by_id": (("timestamptz", "uuid[]"), LIST),
    "worklist_due": (
        ("timestamptz", "int4", "uuid", "uuid[]", "int8", "uuid[]", "int8[]")
        + ("timestamptz[]", "timestamptz[]"),
        LIST + ("filed_under",) + HINTS,
    ),
    "floors_refresh": (
        ("uuid[]", "timestamptz"),
        ("partition_id", "queue_id", "state", "consumer_group", "due", "future"),
    ),
    "floors_pinned": (("timestamptz", "uuid", "int4"), ("partition_id", "looked", "last")),
    "floors_walk": (
        ("timestamptz", "uuid", "int4"),
        ("partition_id", "queue_id", "state", "consumer_group", "due", "future")
        + ("looked", "last", "total"),
    ),
}


class Row(dict):
    __getattr__ = dict.__getitem__


class Client:
    """One connection that sends the client statements as prepared ones."""

    def __init__(self, db, schema="queen", version=2, **connect):
        self.connection = db.connect(application_name="retention", **connect)
        self.schema = install.quote_name(schema)
        self.version = version
        self.prepared = set()

    def sql(self, text, *args):
        with self.connection.cursor() as cursor:
            cursor.execute(text, args or None)
            return cursor.fetchall() if cursor.description else []

    def text(self, name):
        body = client_statement(name + ".sql", log=self.schema)
        if name not in STATEMENTS:
            return body
        columns = STATEMENTS[name][1]
        picked = ", ".join(c + "::text" if c in AS_TEXT else c for c in columns)
        return f"SELECT {picked} FROM ({body}) AS answer"

    def prepare(self, name):
        if name not in self.prepared:
            self.sql(f"PREPARE {name} AS {self.text(name)}")
            self.prepared.add(name)

    @staticmethod
    def marks(name, args):
        types = STATEMENTS[name][0] if name in STATEMENTS else [None] * len(args)
        return ", ".join("%s" + (f"::{kind}" if kind else "") for kind in types)

    def call(self, name, *args):
        self.prepare(name)
        rows = self.sql(f"EXECUTE {name} ({self.marks(name, args)})", *args)
        if name not in STATEMENTS:
            return rows
        return [Row(zip(STATEMENTS[name][1], row)) for row in rows]

    def buffers(self, name, *args):
        """Buffers that the statement touches, and its plan."""
        self.prepare(name)
        text = f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE {name} ({self.marks(name, args)})"
        plan = self.sql(text, *args)
        top = plan[0][0][0]["Plan"]
        return top["Shared Hit Blocks"] + top["Shared Read Blocks"], top

    # --- single calls -------------------------------------------------------------------------

    def due(self, clock=None, cap=200, after=None, exclude=(), hints=None):
        """(partitions, the last row)"""
        hints = [hints[name] for name in HINTS] if hints else [None] * len(HINTS)
        rows = self.call("worklist_due", clock, cap, after, list(exclude), *hints)
        assert all(row.partition_id for row in rows[:-1]) and rows[-1].partition_id is None
        return rows[:-1], rows[-1]

    def refresh(self, ids, clock=None):
        return self.call("floors_refresh", list(ids), clock)

    def pinned(self, clock=None, after=None, limit=10000):
        rows = self.call("floors_pinned", clock, after, limit)
        return [row.partition_id for row in rows[:-1]], rows[-1]

    def walk(self, clock=None, after=None, limit=1000):
        rows = self.call("floors_walk", clock, after, limit)
        return rows[:-1], rows[-1]

    def walk_round(self, clock=None, limit=1000):
        changed, after = [], None
        while True:
            rows, end = self.walk(clock, after, limit)
            changed += rows
            after = end.last
            if after is None:
                return changed

    # --- steps --------------------------------------------------------------------------------

    def drain(self, kind, partition_id, *cutoffs, rows=100):
        """Steps until done; returns the rows deleted."""
        deleted = 0
        while True:
            row = self.call(f"step_{kind}_v{self.version}", partition_id, *cutoffs, rows, True)[0]
            assert not row[5]
            deleted += row[0]
            self.steps += 1
            if row[3] or row[0] == 0:
                return deleted

    def step_item(self, item, rows=100):
        """The three phases of one partition; returns the rows deleted."""
        deleted = 0
        if item.all_cutoff or item.completed_cutoff:
            deleted += self.drain(
                "retention", item.partition_id, item.all_cutoff, item.completed_cutoff, rows=rows
            )
        if item.txns_cutoff:
            deleted += self.drain("txns", item.partition_id, item.txns_cutoff, rows=rows)
        if item.max_wait_cutoff:
            deleted += self.drain("max_wait", item.partition_id, item.max_wait_cutoff, rows=rows)
        return deleted


class Cycle:
    """What the library keeps from cycle to cycle, and one cycle after the other."""

    def __init__(self, client, cap=200):
        self.client = client
        self.cap = cap
        self.hints = None
        self.after = None
        self.reports = []

    def run(self, full=False, recheck=True, rows=100):
        """One cycle; returns the rows it deleted."""
        client, exclude, seen = self.client, set(), {}
        client.steps = 0
        self.pages = self.refreshed = deleted = 0
        clock = None
        rechecked = not recheck
        hints = None if full else self.hints
        while True:
            items, end = client.due(clock, self.cap, self.after, exclude, hints)
            clock = end.clock
            self.pages += 1
            if not items:
                if end.hint_look is not None:
                    self.hints = {name: end[name] for name in HINTS}
                if rechecked:
                    return deleted
                rechecked = True
                self._recheck(clock, exclude)
                continue
            self.after = items[-1].filed_under
            refresh = []
            for item in items:
                gone = client.step_item(item, rows)
                deleted += gone
                if gone == 0 or item.filed_under != item.queue_id or client.version == 1:
                    refresh.append(item.partition_id)
                seen[item.partition_id] = seen.get(item.partition_id, 0) + 1
                if seen[item.partition_id] > 3:
                    exclude.add(item.partition_id)  # no progress: left to the next cycle
            self._refresh(refresh, clock, exclude)

    def _refresh(self, ids, clock, exclude):
        for start in range(0, len(ids), REFRESH_MOST):
            for row in self.client.refresh(ids[start : start + REFRESH_MOST], clock):
                self.reports.append(row)
                self.refreshed += 1
                if row.state == "busy":
                    exclude.add(row.partition_id)

    def _recheck(self, clock, exclude):
        after = None
        while True:
            ids, end = self.client.pinned(clock, after)
            self._refresh(ids, clock, exclude)
            after = end.last
            if after is None:
                return
