"""What a segment-log broker does to its tables, as plain SQL: push, pop, ack, seek and the rest.

One Broker is one client with one connection. It knows nothing of retention.
"""

import datetime
import hashlib
import uuid

QUEUE_MODE = "__QUEUE_MODE__"
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
MICROSECOND = datetime.timedelta(microseconds=1)


def to_us(moment):
    """A timestamptz as psycopg2 returns it -> microseconds since 1970."""
    return None if moment is None else (moment - EPOCH) // MICROSECOND


def from_us(micros):
    return None if micros is None else EPOCH + micros * MICROSECOND


def message_hash(transaction_id):
    return hashlib.md5(str(transaction_id).encode()).digest()


def split_hashes(hashes):
    raw = bytes(hashes)
    return {raw[i : i + 16] for i in range(0, len(raw), 16)}


class Broker:
    """Every operation is its own transaction, unless begin() was called.

    prepares: each statement is planned once and not each time, as most brokers do it.
    """

    def __init__(self, db, schema="queen", streams="queen_streams", prepares=False):
        self.db = db
        self.connection = db.connect(application_name="broker")
        self.schema = '"{}"'.format(schema.replace('"', '""'))
        self.streams = '"{}"'.format(streams.replace('"', '""'))
        self._serial = 0
        self._prepared = {} if prepares else None  # text -> how it is executed

    def close(self):
        self.connection.close()

    def sql(self, text, *args):
        """One statement; {q} is the log schema and {s} the streams schema."""
        with self.connection.cursor() as cursor:
            if self._prepared is None:
                text = self._named(text)
            else:
                text = self._execution(cursor, text, len(args))
            cursor.execute(text, args or None)
            return cursor.fetchall() if cursor.description else []

    def _named(self, text):
        return text.replace("{q}", self.schema).replace("{s}", self.streams)

    def _execution(self, cursor, text, count):
        """Prepares the statement where it is new; no rollback takes that back."""
        if text not in self._prepared:
            name = f"statement_{len(self._prepared)}"
            numbers = [f"${n + 1}" for n in range(count)]
            statement = self._named(text)
            if count:
                statement = statement % (*numbers,)
            cursor.execute(f"PREPARE {name} AS {statement}")
            marks = ", ".join(["%s"] * count)
            self._prepared[text] = f"EXECUTE {name}" + (f"({marks})" if count else "")
        return self._prepared[text]

    def one(self, text, *args):
        rows = self.sql(text, *args)
        return rows[0][0] if rows else None

    def begin(self):
        """Keeps the following operations in one transaction until commit() or rollback()."""
        self.connection.autocommit = False

    def commit(self):
        self.connection.commit()
        self.connection.autocommit = True

    def rollback(self):
        self.connection.rollback()
        self.connection.autocommit = True

    def transaction(self):
        return Transaction(self)

    # --- queues and partitions --------------------------------------------------------------

    def create_queue(self, name, tenant=None, queue_id=None, **policy):
        """policy: retention_enabled, retention_seconds, ... as the columns are named."""
        values = dict(policy, name=name, id=str(queue_id or uuid.uuid4()))
        if tenant is not None:
            values["tenant_id"] = str(tenant)
        columns = ", ".join(values)
        marks = ", ".join(["%s"] * len(values))
        return self.one(
            f"INSERT INTO {{q}}.queues ({columns}) VALUES ({marks}) RETURNING id::text",
            *values.values(),
        )

    def configure(self, queue_id, **policy):
        assignments = ", ".join(f"{column} = %s" for column in policy)
        self.sql(f"UPDATE {{q}}.queues SET {assignments} WHERE id = %s", *policy.values(), queue_id)

    def partition(self, queue_id, name="Default", partition_id=None):
        """Finds the partition of that name or provisions it."""
        found = self.one(
            "SELECT id::text FROM {q}.log_partitions WHERE queue_id = %s AND name = %s",
            queue_id,
            name,
        )
        if found:
            return found
        return self.one(
            "INSERT INTO {q}.log_partitions (id, queue_id, name) VALUES (%s, %s, %s)"
            " ON CONFLICT (queue_id, name) DO UPDATE SET name = excluded.name RETURNING id::text",
            str(partition_id or uuid.uuid4()),
            queue_id,
            name,
        )

    def delete_queue(self, name, tenant=None):
        if tenant is None:
            return self.one("SELECT {q}.delete_queue_v1(%s)", name)
        return self.one("SELECT {q}.delete_queue_v1(%s, %s)", name, str(tenant))

    # --- push -------------------------------------------------------------------------------

    def push(self, partition_id, messages=1, blob=b"x"):
        """Appends one segment. messages: a count, or transaction ids.

        Returns (base_offset, end_offset, stamp in us), or (None, None, stamp) when the
        deduplication window already holds one of them. Raises LookupError when the partition
        is gone.
        """
        with Transaction(self):
            return self._push(partition_id, messages, blob)

    def push_multi(self, pushes):
        """[(partition_id, messages)]: locks all of them in ascending id, then appends to each."""
        with Transaction(self):
            ids = sorted({pid for pid, _ in pushes}, key=lambda pid: uuid.UUID(pid).bytes)
            locked = self.sql(
                "SELECT id FROM {q}.log_partitions WHERE id = ANY (%s::uuid[])"
                " ORDER BY id FOR UPDATE",
                ids,
            )
            if len(locked) != len(ids):
                raise LookupError(f"resolved {len(locked)} of {len(ids)} partitions")
            return [self._push(pid, messages, b"x") for pid, messages in pushes]

    def _push(self, partition_id, messages, blob):
        if isinstance(messages, int):
            messages = [f"auto-{id(self)}-{self._serial + n}" for n in range(messages)]
            self._serial += len(messages)
        window = self.one(
            "SELECT q.dedup_window_seconds FROM {q}.log_partitions p"
            " JOIN {q}.queues q ON q.id = p.queue_id WHERE p.id = %s",
            partition_id,
        )
        locked = self.sql(
            "SELECT last_offset, txns_start FROM {q}.log_partitions WHERE id = %s FOR "
            + ("UPDATE" if window and window > 0 else "NO KEY UPDATE"),
            partition_id,
        )
        if not locked:
            raise LookupError(f"partition {partition_id} is gone")
        last_offset, txns_start = locked[0]
        stamp = self.one("SELECT clock_timestamp()")
        hashes = [message_hash(m) for m in messages]
        if window and window > 0 and self._known(partition_id, txns_start, stamp, window, hashes):
            return None, None, to_us(stamp)
        base, end = last_offset + 1, last_offset + len(messages)
        self.sql(
            "UPDATE {q}.log_partitions SET last_offset = %s,"
            " last_write_at = CASE WHEN last_write_at < %s::timestamptz - interval '1 second'"
            " THEN %s ELSE last_write_at END WHERE id = %s",
            end,
            stamp,
            stamp,
            partition_id,
        )
        self.sql(
            "INSERT INTO {q}.log_segments (partition_id, base_offset, end_offset, created_at, blob)"
            " VALUES (%s, %s, %s, %s, %s)",
            partition_id,
            base,
            end,
            stamp,
            blob,
        )
        self.sql(
            "INSERT INTO {q}.log_txns (partition_id, base_offset, end_offset, created_at, hashes)"
            " VALUES (%s, %s, %s, %s, %s)",
            partition_id,
            base,
            end,
            stamp,
            b"".join(hashes),
        )
        return base, end, to_us(stamp)

    def _known(self, partition_id, txns_start, stamp, window, hashes):
        rows = self.sql(
            "SELECT hashes FROM {q}.log_txns WHERE partition_id = %s AND base_offset >= %s"
            " AND created_at >= %s",
            partition_id,
            txns_start,
            stamp - datetime.timedelta(seconds=window),
        )
        wanted = set(hashes)
        return any(wanted & split_hashes(row[0]) for row in rows)

    # --- consumers --------------------------------------------------------------------------

    def subscribe(self, partition_id, group=QUEUE_MODE, committed=-1):
        """Makes the consumer row where it is missing; returns its created_at in us."""
        return to_us(
            self.one(
                "INSERT INTO {q}.log_consumers (partition_id, consumer_group, committed)"
                " VALUES (%s, %s, %s) ON CONFLICT (partition_id, consumer_group)"
                " DO UPDATE SET consumer_group = excluded.consumer_group RETURNING created_at",
                partition_id,
                group,
                committed,
            )
        )

    def pop(
        self, partition_id, group=QUEUE_MODE, auto_ack=False, worker="worker", lease_seconds=60
    ):
        """Claims the next batch: (base wanted, end); None when there is none or it is leased."""
        with Transaction(self):
            self.subscribe(partition_id, group)
            claimed = self.sql(
                "SELECT committed, batch_end IS NOT NULL AND lease_expires_at > clock_timestamp()"
                " FROM {q}.log_consumers WHERE partition_id = %s AND consumer_group = %s"
                " FOR UPDATE SKIP LOCKED",
                partition_id,
                group,
            )
            if not claimed or claimed[0][1]:
                return None
            wanted = claimed[0][0] + 1
            found = self.sql(
                "(SELECT base_offset, end_offset FROM {q}.log_segments WHERE partition_id = %s"
                " AND base_offset <= %s AND end_offset >= %s ORDER BY base_offset DESC LIMIT 1)"
                " UNION ALL (SELECT base_offset, end_offset FROM {q}.log_segments"
                " WHERE partition_id = %s AND base_offset > %s ORDER BY base_offset LIMIT 1)"
                " ORDER BY base_offset LIMIT 1",
                partition_id,
                wanted,
                wanted,
                partition_id,
                wanted,
            )
            if not found:
                self._seal(partition_id, group)
                return None
            base, end = found[0]
            if auto_ack:
                self._commit_offset(partition_id, group, end)
            else:
                self._lease(partition_id, group, end, worker, lease_seconds)
            return max(base, wanted), end

    def _seal(self, partition_id, group):
        self.sql(
            "UPDATE {q}.log_consumers c SET committed = GREATEST(c.committed, p.last_offset)"
            " FROM {q}.log_partitions p WHERE p.id = c.partition_id AND c.partition_id = %s"
            " AND c.consumer_group = %s",
            partition_id,
            group,
        )

    def _commit_offset(self, partition_id, group, end):
        self.sql(
            "UPDATE {q}.log_consumers SET committed = %s, batch_end = NULL, worker_id = NULL,"
            " lease_expires_at = NULL, lease_acquired_at = NULL"
            " WHERE partition_id = %s AND consumer_group = %s",
            end,
            partition_id,
            group,
        )

    def _lease(self, partition_id, group, end, worker, lease_seconds):
        self.sql(
            "UPDATE {q}.log_consumers SET batch_end = %s, worker_id = %s,"
            " lease_acquired_at = clock_timestamp(),"
            " lease_expires_at = clock_timestamp() + make_interval(secs => %s)"
            " WHERE partition_id = %s AND consumer_group = %s",
            end,
            worker,
            lease_seconds,
            partition_id,
            group,
        )

    def ack(self, partition_id, group=QUEUE_MODE, worker="worker", upto=None):
        """Acknowledges the leased batch, or a part of it; False without a live lease."""
        return bool(
            self.sql(
                "UPDATE {q}.log_consumers"
                " SET committed = LEAST(batch_end, COALESCE(%s, batch_end)), batch_end = NULL,"
                " worker_id = NULL, lease_expires_at = NULL"
                " WHERE partition_id = %s AND consumer_group = %s AND worker_id = %s"
                " AND batch_end IS NOT NULL AND lease_expires_at > clock_timestamp()"
                " RETURNING committed",
                upto,
                partition_id,
                group,
                worker,
            )
        )

    def seek(self, partition_id, group, committed):
        """Moves a cursor anywhere, backwards too, and drops its lease."""
        self.sql(
            "UPDATE {q}.log_consumers SET committed = %s, batch_end = NULL, worker_id = NULL,"
            " lease_expires_at = NULL WHERE partition_id = %s AND consumer_group = %s",
            committed,
            partition_id,
            group,
        )

    def unsubscribe(self, partition_id, group):
        self.sql(
            "DELETE FROM {q}.log_consumers WHERE partition_id = %s AND consumer_group = %s",
            partition_id,
            group,
        )

    def dead_letter(self, partition_id, group, offset, error="failed"):
        """Parks one message, under the consumer row's lock as a broker does."""
        with Transaction(self):
            self.sql(
                "SELECT 1 FROM {q}.log_consumers WHERE partition_id = %s AND consumer_group = %s"
                " FOR UPDATE",
                partition_id,
                group,
            )
            self.sql(
                'INSERT INTO {q}.log_dlq (partition_id, consumer_group, "offset", transaction_id,'
                " payload, error) VALUES (%s, %s, %s, %s, '{}', %s)",
                partition_id,
                group,
                offset,
                f"dead-{offset}",
                error,
            )

    def clear_dead_letters(self, partition_id):
        self.sql("DELETE FROM {q}.log_dlq WHERE partition_id = %s", partition_id)

    def stream_query(self, name="query"):
        """A streams query to hang state on; returns its id."""
        return self.one("INSERT INTO {s}.queries (name) VALUES (%s) RETURNING id", name)

    def stream_state(self, query_id, partition_id, key="key"):
        self.sql(
            "INSERT INTO {s}.state (query_id, partition_id, key, value) VALUES (%s, %s, %s, '{}')"
            " ON CONFLICT (query_id, partition_id, key) DO NOTHING",
            query_id,
            partition_id,
            key,
        )

    def clear_stream_state(self, partition_id):
        self.sql("DELETE FROM {s}.state WHERE partition_id = %s", partition_id)

    # --- time -------------------------------------------------------------------------------

    def age(self, seconds, partition_id=None):
        """Lets time pass: moves every stamp that retention reads into the past."""
        only = "" if partition_id is None else " WHERE {key} = %s"
        args = [seconds] if partition_id is None else [seconds, partition_id]
        past = "- make_interval(secs => %s)"
        columns = {
            "log_segments": ("partition_id", ["created_at"]),
            "log_txns": ("partition_id", ["created_at"]),
            "log_partitions": ("id", ["created_at", "last_write_at"]),
            "log_consumers": (
                "partition_id",
                ["created_at", "lease_acquired_at", "lease_expires_at"],
            ),
        }
        for table, (key, stamps) in columns.items():
            moved = ", ".join(f"{stamp} = {stamp} {past}" for stamp in stamps)
            self.sql(
                f"UPDATE {{q}}.{table} SET {moved}" + only.format(key=key),
                *[seconds] * (len(stamps) - 1),
                *args,
            )


class Transaction:
    """Joins the transaction that is open, else makes its own."""

    def __init__(self, broker):
        self.broker = broker
        self.outer = not broker.connection.autocommit

    def __enter__(self):
        if not self.outer:
            self.broker.begin()
        return self

    def __exit__(self, kind, value, trace):
        if self.outer:
            return
        if kind is None:
            self.broker.commit()
        else:
            self.broker.rollback()
