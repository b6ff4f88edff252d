"""L19, its failing half, and L20: a bad item never stops the others; what is hopeless ends at once."""

import threading

import pytest

from cycle import support
from pg import bulk, qret


def test_failing_partition_is_skipped_and_reported(db):
    _, ids = bulk.backlog(db, 5, 3)
    support.fail_deletes_of(db, ids[1], "RAISE EXCEPTION 'not today' USING ERRCODE = 'QX001'")
    with qret.Context(db.dsn) as context:
        code, report = context.try_cycle()
        assert code == qret.PARTIAL == report["outcome"]
        assert (report["items_failed"], report["segments_deleted"]) == (1, 12)
        assert context.sqlstate == "QX001"
        assert "not today" in context.message
        (line,) = context.events("item_failed")
        assert ids[1] in line.text and "QX001" in line.text
    left = db.sql("SELECT DISTINCT partition_id::text FROM queen.log_segments")
    assert left == [(ids[1],)]
    db.sql("DROP TRIGGER refuse ON queen.log_segments")
    with qret.Context(db.dsn) as context:
        assert context.cycle()["segments_deleted"] == 3


@pytest.mark.parametrize(
    "failure",
    [
        "RAISE serialization_failure",
        "RAISE deadlock_detected",
        "RAISE lock_not_available",
        "RAISE query_canceled",
        "RAISE division_by_zero",
        "RAISE unique_violation",
        "RAISE internal_error",
    ],
)
def test_failure_classes_that_spare_the_cycle(db, failure):
    _, ids = bulk.backlog(db, 3, 2)
    support.fail_deletes_of(db, ids[0], failure)
    with qret.Context(db.dsn) as context:
        code, report = context.try_cycle()
    assert code == qret.PARTIAL
    assert report["segments_deleted"] == 4
    assert 1 in (report["items_failed"], report["items_locked"])


def test_failing_partition_backs_off(db):
    """After a second failure it is left alone for a while, and the others are not."""
    _, ids = bulk.backlog(db, 2, 2)
    support.fail_deletes_of(db, ids[0])
    with qret.Context(db.dsn) as context:
        codes = [context.try_cycle()[0] for _ in range(2)]
        assert codes == [qret.PARTIAL] * 2
        bulk.segments(db, ids[1:], 2, support.HALF_HOUR)
        db.sql("DROP TRIGGER refuse ON queen.log_segments")
        _, report = context.try_cycle()
        assert report["segments_deleted"] == 2
        assert db.sql("SELECT DISTINCT partition_id::text FROM queen.log_segments") == [(ids[0],)]
    with qret.Context(db.dsn) as context:
        assert context.cycle()["segments_deleted"] == 2


def test_locked_partition_is_skipped(db):
    """A row lock held elsewhere costs lock_timeout_ms once, and the others go on."""
    _, ids = bulk.backlog(db, 4, 2)
    holder = db.connect(autocommit=False)
    with holder.cursor() as cursor:
        cursor.execute("SELECT 1 FROM queen.log_partitions WHERE id = %s FOR UPDATE", (ids[0],))
    with qret.Context(db.dsn, lock_timeout_ms=200, late_lock_ms=50) as context:
        code, report = context.try_cycle()
        assert code == qret.PARTIAL
        assert report["segments_deleted"] == 6
        assert report["items_locked"] >= 1
        assert report["elapsed_us"] < 5_000_000
    holder.rollback()
    with qret.Context(db.dsn) as context:
        assert context.cycle()["segments_deleted"] == 2


def test_statement_timeout_spares_the_cycle(db):
    _, ids = bulk.backlog(db, 3, 2)
    support.fail_deletes_of(db, ids[1], "PERFORM pg_sleep(30)")
    with qret.Context(db.dsn, statement_timeout_ms=300) as context:
        code, report = context.try_cycle()
    assert code == qret.PARTIAL
    assert report["segments_deleted"] == 4
    assert report["items_failed"] == 1
    assert report["elapsed_us"] < 10_000_000


def test_twenty_failures_of_one_kind_end_the_cycle(db):
    _, ids = bulk.backlog(db, 40, 1)
    support.fail_deletes_of(db, ids, "RAISE division_by_zero")
    with qret.Context(db.dsn) as context:
        code, report = context.try_cycle()
        assert code == qret.ERR_SQL
        assert context.sqlstate == "22012"
        assert report["items_failed"] == 20
        assert report["consecutive_failures"] == 1
    assert support.advisory_locks(db) == []


def test_failures_of_many_kinds_do_not_end_the_cycle(db):
    _, ids = bulk.backlog(db, 41, 1)
    support.fail_deletes_of(
        db,
        ids[:40],
        "IF ('x' || right(OLD.partition_id::text, 1))::text < 'x8' THEN RAISE division_by_zero;"
        " ELSE RAISE unique_violation; END IF",
    )
    db.sql(
        "CREATE OR REPLACE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ DECLARE"
        " n bigint; BEGIN IF NOT OLD.partition_id::text = ANY (TG_ARGV) THEN RETURN OLD; END IF;"
        " n := array_position(TG_ARGV, OLD.partition_id::text);"
        " IF n % 2 = 0 THEN RAISE division_by_zero; ELSE RAISE unique_violation; END IF; END $$"
    )
    with qret.Context(db.dsn) as context:
        code, report = context.try_cycle()
    assert code == qret.PARTIAL
    assert (report["items_failed"], report["segments_deleted"]) == (40, 1)


def test_missing_function_ends_the_cycle(db):
    bulk.backlog(db, 5, 1)
    for version in (1, 2):
        for name in db.sql(
            "SELECT oid::regprocedure::text FROM pg_proc WHERE proname = %s",
            f"log_retention_step_v{version}",
        ):
            db.sql(f"DROP FUNCTION {name[0]}")
    with qret.Context(db.dsn) as context:
        code, report = context.try_cycle()
        assert code == qret.ERR_SCHEMA
        assert report["segments_deleted"] == 0
        assert "install" in context.hint
        assert not context.retryable


def test_lost_connection_ends_the_cycle_and_the_next_one_reconnects(db):
    bulk.backlog(db, 3, 2)
    db.sql(
        "CREATE FUNCTION public.die() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$"
    )
    db.sql(
        "CREATE TRIGGER die BEFORE DELETE ON queen.log_segments FOR EACH STATEMENT"
        " EXECUTE FUNCTION public.die()"
    )
    with qret.Context(db.dsn) as context:
        code, report = context.try_cycle()
        assert code == qret.ERR_CONNECTION
        assert context.retryable
        assert report["segments_deleted"] == 0
        db.sql("DROP TRIGGER die ON queen.log_segments")
        assert context.cycle()["segments_deleted"] == 6
    assert support.eventually(lambda: not support.advisory_locks(db))


def test_read_only_server_ends_the_cycle(db):
    bulk.backlog(db, 3, 2)
    db.sql(f'ALTER DATABASE "{db.name}" SET default_transaction_read_only = on')
    with qret.Context(db.dsn) as context:
        code, report = context.try_cycle()
        assert code == qret.STANDBY or code < 0
        assert report["items_failed"] <= 1
        assert report["segments_deleted"] == 0
    assert support.eventually(lambda: not support.advisory_locks(db))


def test_metrics_purge_failure_leaves_the_cycle_good(db):
    """L10: logged once, whatever the error; the next table still goes."""
    bulk.backlog(db, 1, 2)
    db.sql("DROP TABLE queen.worker_metrics")
    db.sql(
        "INSERT INTO queen.retention_history (retention_type, executed_at)"
        " VALUES ('retention', now() - make_interval(days => 91))"
    )
    with qret.Context(db.dsn) as context:
        report = context.cycle()
        assert (report["segments_deleted"], report["metrics_purged"]) == (2, 1)
        context.cycle()
        assert len(context.events("metrics_purge_error")) == 1
        assert "worker_metrics" in context.events("metrics_purge_error")[0].text


def test_broken_contract_does_not_spin(cluster):
    """L20: nothing deleted and never done."""
    db = support.foreign_database(cluster)
    bulk.backlog(db, 2, 2)
    db.sql(
        "CREATE OR REPLACE FUNCTION queen.log_retention_step_v1(p_pid uuid,"
        " p_all_cutoff timestamptz, p_completed_cutoff timestamptz, p_max_rows int, p_history_type text DEFAULT NULL)"
        " RETURNS jsonb LANGUAGE sql AS"
        """ $$ SELECT '{"deleted": 0, "new_log_start": 0, "done": false}'::jsonb $$"""
    )
    with qret.Context(db.dsn) as context:
        report = {}

        def run():
            report.update(context.cycle())

        runner = threading.Thread(target=run)
        runner.start()
        runner.join(20)
        assert not runner.is_alive() or context.stop()
        assert report["segments_deleted"] == 0
        assert report["steps"] < 30
    db.drop()


def test_clean_up_passes_by_what_a_host_holds_on_to(db):
    """L9, L19: a reference keeps its partition, and neither hides nor slows the others."""
    ids = bulk.partitions(db, bulk.queue(db), 5, 90 * support.DAY)
    db.sql("CREATE TABLE public.note (partition_id uuid REFERENCES queen.log_partitions)")
    db.sql("INSERT INTO public.note VALUES (%s)", ids[2])
    with qret.Context(db.dsn) as context:
        code, report = context.try_cycle()
        assert code == qret.PARTIAL
        assert (report["partitions_deleted"], report["items_failed"]) == (4, 1)
        assert context.sqlstate == "23503" and ids[2] in context.message
        (line,) = context.events("item_failed")
        assert "phase=partition_cleanup" in line.text and ids[2] in line.text
    assert db.sql("SELECT id::text FROM queen.log_partitions") == [(ids[2],)]
    db.sql("DROP TABLE public.note")
    with qret.Context(db.dsn) as context:
        assert context.cycle()["partitions_deleted"] == 1


def floors_take(db, sleep):
    """Writing the floors of one partition runs the PL/pgSQL statement given."""
    db.sql(
        f"""CREATE FUNCTION public.linger() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            {sleep};
            RETURN NEW;
        END $$"""
    )
    db.sql(
        "CREATE TRIGGER linger BEFORE UPDATE ON queen.retention_floors FOR EACH ROW"
        " WHEN (OLD.look_xid IS NOT NULL) EXECUTE FUNCTION public.linger()"
    )


def test_floors_that_take_longer_than_a_statement_may_are_settled_in_smaller_lots(db):
    """B04: new partitions are unknown until they are settled, and would never be stepped."""
    _, ids = bulk.backlog(db, 300, 1)
    floors_take(db, "PERFORM pg_sleep(0.005)")
    with qret.Context(db.dsn, statement_timeout_ms=500, partition_cleanup=False) as context:
        assert context.cycle()["segments_deleted"] == len(ids)
    assert bulk.count(db) == 0


@pytest.mark.parametrize("failure", ["PERFORM pg_sleep(60)", support.NOT_TODAY])
def test_floors_that_cannot_be_settled_are_no_success(db, failure):
    bulk.backlog(db, 300, 1)
    floors_take(db, failure)
    with qret.Context(db.dsn, statement_timeout_ms=100, partition_cleanup=False) as context:
        code, report = context.try_cycle()
        assert code == qret.PARTIAL
        assert report["items_failed"] > 0 and report["round_trips"] < 40
        assert "phase=floors" in context.events("item_failed")[0].text
    db.sql("DROP TRIGGER linger ON queen.retention_floors")
    with qret.Context(db.dsn) as context:
        assert context.cycle()["segments_deleted"] == 300


def test_overdue_is_told_beside_rows_dated_at_the_ends_of_time(db):
    _, ids = bulk.backlog(db, 3, 2)
    for pid, date in zip(ids, ("-infinity", "infinity")):
        db.sql(
            "UPDATE queen.log_segments SET created_at = %s WHERE partition_id = %s"
            " AND base_offset = 0",
            date,
            pid,
        )
    support.fail_deletes_of(db, ids)
    with qret.Context(db.dsn, work_list="scan") as context:
        code, report = context.try_cycle()
        assert code == qret.PARTIAL and report["oldest_overdue_us"] > 0
