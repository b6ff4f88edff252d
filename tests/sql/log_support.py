"""Short ways to build a segment log row by row, for the tests of its SQL functions.

Ages are seconds before one clock, read when the builder is made, so that equality can be tested.
"""

import datetime
import os
import uuid

from pg import install

DAY = 86400
LOG_SQL = os.path.join(install.SQL, "log")
KEPT_TABLES = ("queues", "log_dlq", "message_traces")


def shown(answer):
    """What a clean-up step did, without what it only reports."""
    return {key: answer[key] for key in ("deleted", "last", "done")}


class Log:
    """One connection to a database with the broker's tables, and rows made to measure."""

    def __init__(self, db, schema="queen", streams="queen_streams", **connect):
        self.db = db
        self.connection = db.connect(**connect)
        self.schema = install.quote_name(schema)
        self.streams = install.quote_name(streams)
        self.clock = self.one("SELECT now()")
        self.serial = 0

    def sql(self, text, *args):
        """One statement; {q} is the log schema and {s} the streams schema."""
        with self.connection.cursor() as cursor:
            cursor.execute(text.replace("{q}", self.schema).replace("{s}", self.streams), args or None)
            return cursor.fetchall() if cursor.description else []

    def one(self, text, *args):
        rows = self.sql(text, *args)
        return rows[0][0] if rows else None

    def at(self, age):
        return None if age is None else self.clock - datetime.timedelta(seconds=age)

    def execute(self, statement, *args):
        """Runs a statement with $n parameters as a prepared one, so that its plan can be generic."""
        self.sql("DEALLOCATE ALL")
        with self.connection.cursor() as cursor:
            cursor.execute("PREPARE tested AS " + statement)
        return self.sql(f"EXECUTE tested ({', '.join(['%s'] * len(args))})", *args)

    # --- rows ---------------------------------------------------------------------------------

    def queue(self, **policy):
        self.serial += 1
        values = {"name": f"queue-{self.serial}", **policy}
        return self.one(
            f"INSERT INTO {{q}}.queues ({', '.join(values)})"
            f" VALUES ({', '.join(['%s'] * len(values))}) RETURNING id::text",
            *values.values(),
        )

    def partition(self, age=90 * DAY, silent=80 * DAY, queue=None, pid=None, **columns):
        self.serial += 1
        values = {
            "id": pid or str(uuid.uuid4()),
            "queue_id": queue or self.queue(),
            "name": f"partition-{self.serial}",
            "created_at": self.at(age),
            "last_write_at": self.at(silent),
            **columns,
        }
        return self.one(
            f"INSERT INTO {{q}}.log_partitions ({', '.join(values)})"
            f" VALUES ({', '.join(['%s'] * len(values))}) RETURNING id::text",
            *values.values(),
        )

    def partitions(self, count, **columns):
        """Partitions of ascending id, so that tests know the order of a scan."""
        queue = self.queue()
        return [
            self.partition(pid=f"00000000-0000-4000-8000-{n:012d}", queue=queue, **columns)
            for n in range(1, count + 1)
        ]

    def segments(self, pid, ages, size=10, base=0, sidecar=True):
        """Segments of `size` messages in a row from `base`, one for each age; returns the next base."""
        for age in ages:
            end = base + size - 1
            self.sql(
                "INSERT INTO {q}.log_segments (partition_id, base_offset, end_offset, created_at, blob)"
                " VALUES (%s, %s, %s, %s, 'blob')",
                pid,
                base,
                end,
                self.at(age),
            )
            if sidecar:
                self.sidecar(pid, base, end, age)
            base = end + 1
        self.sql(
            "UPDATE {q}.log_partitions SET last_offset = GREATEST(last_offset, %s) WHERE id = %s",
            base - 1,
            pid,
        )
        return base

    def sidecar(self, pid, base, end, age):
        self.sql(
            "INSERT INTO {q}.log_txns (partition_id, base_offset, end_offset, created_at, hashes)"
            " VALUES (%s, %s, %s, %s, 'hash')",
            pid,
            base,
            end,
            self.at(age),
        )

    def consumer(self, pid, committed=-1, group="group", age=90 * DAY, **columns):
        values = {
            "partition_id": pid,
            "consumer_group": group,
            "committed": committed,
            "created_at": self.at(age),
            **columns,
        }
        self.sql(
            f"INSERT INTO {{q}}.log_consumers ({', '.join(values)})"
            f" VALUES ({', '.join(['%s'] * len(values))})",
            *values.values(),
        )

    def dead_letter(self, pid):
        self.sql("INSERT INTO {q}.log_dlq (partition_id, error) VALUES (%s, 'failed')", pid)

    def trace(self, pid):
        self.sql("INSERT INTO {q}.message_traces (partition_id) VALUES (%s)", pid)

    def state(self, pid):
        query = self.one("INSERT INTO {s}.queries (name) VALUES ('query') RETURNING id")
        self.sql(
            "INSERT INTO {s}.state (query_id, partition_id, key) VALUES (%s, %s, 'key')", query, pid
        )

    # --- steps --------------------------------------------------------------------------------

    def retain(self, pid, stale=None, completed=None, rows=1000, kind=None):
        """stale, completed: the ages of the two cutoffs."""
        return self.one(
            "SELECT {q}.log_retention_step_v1(%s, %s, %s, %s, %s)",
            pid,
            self.at(stale),
            self.at(completed),
            rows,
            kind,
        )

    def purge(self, pid, age, rows=1000):
        return self.one("SELECT {q}.log_txns_purge_step_v1(%s, %s, %s)", pid, self.at(age), rows)

    def evict(self, pid, age, rows=1000):
        return self.one("SELECT {q}.log_evict_max_wait_step_v1(%s, %s, %s)", pid, self.at(age), rows)

    def dead(self, pid, age=30 * DAY):
        return self.one("SELECT {q}.log_partition_dead_v1(%s, %s)", pid, self.at(age))

    def cleanup(self, age=30 * DAY, rows=1000):
        return self.one("SELECT {q}.log_partition_cleanup_step_v1(%s, %s)", self.at(age), rows)

    def cleanup_v2(self, age=30 * DAY, rows=1000, after=None):
        return self.one(
            "SELECT {q}.log_partition_cleanup_step_v2(%s, %s, %s)", self.at(age), rows, after
        )

    def cleanup_round(self, age=30 * DAY, rows=1000):
        """A whole round of the clean-up with a cursor; returns how many partitions went."""
        deleted, after = 0, None
        while True:
            answer = self.cleanup_v2(age, rows, after)
            deleted += answer["deleted"]
            assert answer["last"] is None or after is None or answer["last"] > after
            after = answer["last"]
            if answer["done"]:
                return deleted

    # --- what is left -------------------------------------------------------------------------

    def bases(self, pid, table="log_segments"):
        rows = self.sql(
            f"SELECT base_offset FROM {{q}}.{table} WHERE partition_id = %s ORDER BY 1", pid
        )
        return [row[0] for row in rows]

    def watermark(self, pid, column="log_start"):
        return self.one(f"SELECT {column} FROM {{q}}.log_partitions WHERE id = %s", pid)

    def history(self, pid):
        """(type, messages) of the partition's audit rows, oldest first."""
        return self.sql(
            "SELECT retention_type, messages_deleted FROM {q}.retention_history"
            " WHERE partition_id = %s ORDER BY executed_at, messages_deleted",
            pid,
        )

    def alive(self):
        return [row[0] for row in self.sql("SELECT id::text FROM {q}.log_partitions ORDER BY id")]

    def exists(self, pid):
        return bool(self.sql("SELECT 1 FROM {q}.log_partitions WHERE id = %s", pid))

    def orphans(self):
        """Rows of the sidecar whose partition is gone."""
        return self.one(
            "SELECT count(*) FROM {q}.log_txns AS t WHERE NOT EXISTS"
            " (SELECT FROM {q}.log_partitions AS p WHERE p.id = t.partition_id)"
        )

    def kept(self):
        """Everything that retention must never touch, as text."""
        return {
            table: self.sql(f"SELECT t::text FROM {{q}}.{table} AS t ORDER BY 1")
            for table in KEPT_TABLES
        }


def source(path, **settings):
    """A file of sql/log as the installer sends it."""
    with open(os.path.join(LOG_SQL, path), encoding="utf-8") as text:
        body = text.read().replace("@part", "@log")  # the log part's own schema
    return install.substitute(body, install.tokens(**settings))


def client_statement(name, **replacements):
    """A statement of sql/client with its tokens replaced, for Log.execute()."""
    body = install.client_text(name)
    for token, value in replacements.items():
        body = body.replace(f"@{token}@", value)
    return body


def cut(text, clause):
    """Takes a clause out of a statement, and fails where it is not there exactly once."""
    assert text.count(clause) == 1, f"expected once: {clause!r}"
    return text.replace(clause, "")
