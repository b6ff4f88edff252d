"""What the tests of the library on a real server share: spies in the database, and waiting."""

import os
import time

from pg import qret

FOREIGN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "foreign.sql")
HALF_HOUR, HOUR, DAY = 1800, 3600, 86_400


def install_foreign(db):
    """The contract functions of somebody else, in place of ours."""
    with open(FOREIGN, encoding="utf-8") as source:
        db.sql(source.read())


def foreign_database(cluster):
    """A database with the broker's tables and functions that we did not make."""
    db = cluster.create_database(("broker",))
    install_foreign(db)
    return db


def spy_on_deletes(db, table="log_segments"):
    """From now on the table deletes records (xid, rows, partitions, isolation) per statement."""
    db.sql(
        "CREATE TABLE IF NOT EXISTS public.deletes (at timestamptz DEFAULT clock_timestamp(),"
        " relation text, xid text, rows bigint, partitions bigint, isolation text, locks bigint)"
    )
    key = "id" if table == "log_partitions" else "partition_id"
    db.sql(
        f"""CREATE FUNCTION public.spy_{table}() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            INSERT INTO public.deletes (relation, xid, rows, partitions, isolation, locks)
            SELECT '{table}', pg_current_xact_id()::text, count(*), count(DISTINCT {key}),
                current_setting('transaction_isolation'),
                (SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid())
            FROM gone HAVING count(*) > 0;
            RETURN NULL;
        END $$"""
    )
    db.sql(
        f"CREATE TRIGGER spy AFTER DELETE ON queen.{table} REFERENCING OLD TABLE AS gone"
        f" FOR EACH STATEMENT EXECUTE FUNCTION public.spy_{table}()"
    )


def deletes(db, relation="log_segments"):
    """[(xid, rows, partitions, isolation, locks)] in order."""
    return db.sql(
        "SELECT xid, rows, partitions, isolation, locks FROM public.deletes WHERE relation = %s"
        " ORDER BY at",
        relation,
    )


NOT_TODAY = "RAISE EXCEPTION 'not today'"


def fail_deletes_of(db, partition_id, raise_sql=NOT_TODAY, table="log_segments"):
    """Deleting a row of that partition runs the PL/pgSQL statement given."""
    db.sql(
        f"""CREATE OR REPLACE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF OLD.partition_id::text = ANY (TG_ARGV) THEN
                {raise_sql};
            END IF;
            RETURN OLD;
        END $$"""
    )
    ids = [partition_id] if isinstance(partition_id, str) else partition_id
    arguments = ", ".join(f"'{pid}'" for pid in ids)
    db.sql(f"DROP TRIGGER IF EXISTS refuse ON queen.{table}")
    db.sql(
        f"CREATE TRIGGER refuse BEFORE DELETE ON queen.{table}"
        f" FOR EACH ROW EXECUTE FUNCTION public.refuse({arguments})"
    )


def slow_deletes(db, seconds):
    """Every deleting statement on the segments takes that long."""
    db.sql(
        f"""CREATE OR REPLACE FUNCTION public.dawdle() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            PERFORM pg_sleep({seconds});
            RETURN NULL;
        END $$"""
    )
    db.sql(
        "CREATE TRIGGER dawdle BEFORE DELETE ON queen.log_segments"
        " FOR EACH STATEMENT EXECUTE FUNCTION public.dawdle()"
    )


def advisory_locks(db):
    """[(pid, key)] of the advisory locks held in this database."""
    return db.sql(
        "SELECT pid, (classid::bigint << 32) + objid::bigint FROM pg_locks"
        " WHERE locktype = 'advisory' AND granted"
        " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    )


def others(db):
    """[(pid, state)] of every other session in this database."""
    return db.sql(
        "SELECT pid, state FROM pg_stat_activity WHERE datname = current_database()"
        " AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
    )


def eventually(condition, seconds=5):
    """True as soon as the condition holds; a backend takes a moment to notice and to die."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def finish(context, pause=0.0):
    """Processes the cycle that has begun to its end; returns the final code."""
    while True:
        code = context.process()
        if code == qret.WAIT:
            context.wait()
        elif code != qret.MORE:
            return code
        if pause:
            time.sleep(pause)
