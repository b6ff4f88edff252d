"""The example broker: what it writes, and that it serves while a cycle drains."""

import json
import signal

import pytest

from hosts.programs import fill, wait_for

INVARIANT = """
    SELECT count(*) FROM queen.log_partitions AS p
    WHERE p.last_offset + 1 <> COALESCE(
        (SELECT max(s.end_offset) + 1 FROM queen.log_segments AS s WHERE s.partition_id = p.id), 0)
    OR (SELECT count(*) FROM queen.log_segments AS s WHERE s.partition_id = p.id)
        <> (SELECT count(*) FROM queen.log_txns AS t WHERE t.partition_id = p.id)
    OR EXISTS (SELECT FROM queen.log_segments AS a JOIN queen.log_segments AS b
        ON a.partition_id = b.partition_id AND b.base_offset = a.end_offset + 1
        WHERE a.partition_id = p.id AND b.created_at < a.created_at)
"""


def test_push_fills_log_and_sidecar(db, broker):
    result = broker("--queue", "q,partitions=3", "--rate", "0", "--pushes", "60", "--json")
    assert result.code == 0, result
    row = result.object
    assert (row["pushes"], row["messages"], row["push_errors"]) == (60, 600, 0)
    assert row["push_ms"]["count"] == 60 and row["push_ms"]["p50"] <= row["push_ms"]["p99"]
    assert db.one("SELECT count(*) FROM queen.log_segments") == 60
    assert db.one("SELECT sum(length(hashes)) FROM queen.log_txns") == 600 * 16
    assert db.one(INVARIANT) == 0


def test_same_seed_same_partitions(db, broker):
    counts = []
    for queue in ("a", "b"):
        broker("--queue", f"{queue},partitions=4", "--rate", "0", "--pushes", "40", "--seed", "7")
        counts.append(db.sql(
            "SELECT p.name, p.last_offset FROM queen.log_partitions AS p JOIN queen.queues AS q"
            " ON q.id = p.queue_id WHERE q.name = %s ORDER BY p.name", queue))
    assert counts[0] == counts[1]


def test_duplicates_write_nothing(db, broker):
    result = broker("--queue", "q,dedup=60", "--rate", "0", "--pushes", "100",
                    "--duplicates", "50", "--json")
    row = result.object
    assert 20 < row["duplicates"] < 80
    assert db.one("SELECT count(*) FROM queen.log_segments") == 100 - row["duplicates"]


def test_duplicates_go_through_without_a_window(db, broker):
    result = broker("--queue", "q,dedup=0", "--rate", "0", "--pushes", "50", "--duplicates", "50",
                    "--json")
    assert result.object["duplicates"] == 0
    assert db.one("SELECT count(*) FROM queen.log_segments") == 50


def test_groups_fast_slow_absent(db, broker):
    result = broker("--queue", "q,groups=all:fast+half:slow+none:absent", "--rate", "0",
                    "--pushes", "40", "--drain", "--json")
    assert result.code == 0, result
    committed = dict(db.sql("SELECT consumer_group, committed FROM queen.log_consumers"))
    assert committed == {"all": 399, "half": 199, "none": -1}
    assert result.object["acks"] == 20


def test_dead_letters(db, broker):
    result = broker("--queue", "q,groups=half:slow", "--rate", "0", "--pushes", "100", "--drain",
                    "--dead-letters", "30", "--json")
    letters = db.one("SELECT count(*) FROM queen.log_dlq")
    assert letters == result.object["dead_letters"] > 0
    assert letters + result.object["acks"] == 50


def test_empty_pop_seals_at_the_allocator(db, broker):
    broker("--queue", "q", "--rate", "0", "--pushes", "10")
    db.sql("DELETE FROM queen.log_segments")
    db.sql("UPDATE queen.log_partitions SET log_start = last_offset + 1")
    broker("--queue", "q,groups=late:fast", "--pushers", "0", "--pushes", "0", "--drain")
    assert db.one("SELECT committed FROM queen.log_consumers") == 99


def test_pop_steps_over_a_gap(db, broker):
    broker("--queue", "q", "--rate", "0", "--pushes", "10")
    db.sql("DELETE FROM queen.log_segments WHERE base_offset < 50")
    db.sql("UPDATE queen.log_partitions SET log_start = 50")
    result = broker("--queue", "q,groups=late:fast", "--pushers", "0", "--pushes", "0", "--drain",
                    "--json")
    assert result.object["pops"] == 5
    assert db.one("SELECT total_consumed FROM queen.log_consumers") == 50


def test_push_to_several_partitions_is_one_transaction(db, broker):
    result = broker("--queue", "q,partitions=4", "--rate", "0", "--pushes", "10", "--spread", "4",
                    "--pushers", "3", "--json")
    assert result.object["push_errors"] == 0, result
    stamps = db.one("SELECT count(DISTINCT xmin::text) FROM queen.log_segments")
    assert (stamps, db.one("SELECT count(*) FROM queen.log_segments")) == (10, 40)


def test_rate_is_kept(db, broker):
    row = broker("--queue", "q", "--rate", "50", "--duration", "2", "--json").object
    assert 90 <= row["pushes"] <= 101


def test_a_partition_deleted_underneath_is_provisioned_anew(db, broker):
    process = broker.start("--queue", "q", "--rate", "100", "--duration", "3", "--json")
    wait_for(lambda: db.one("SELECT count(*) FROM queen.log_segments") > 5)
    db.sql("DELETE FROM queen.log_partitions")
    out, err = process.communicate(timeout=20)
    row = json.loads(out)
    assert row["reprovisioned"] == 1 and row["push_errors"] == 0, err
    assert db.one("SELECT count(*) FROM queen.log_segments") > 50


def test_serves_while_a_cycle_drains(db, broker):
    """A drain held to a rate outlasts the run; the pushes keep theirs, on the same poll(2)."""
    fill(db, queue="old", segments=5000)
    row = broker(
        "--queue", "q,groups=g:fast", "--rate", "100", "--duration", "3", "--retention", "--json",
        "--set", "max_rows_per_second=1000", "--set", "batch_size=20",
    ).object
    assert row["push_ms_beside_cycle"]["count"] >= 200, row
    assert row["pushes"] >= 250 and row["push_errors"] == 0
    assert row["pops"] > 0
    assert 0 < row["retention"]["segments_deleted"] < 5000
    left = db.one("SELECT count(*) FROM queen.log_segments AS s JOIN queen.log_partitions AS p"
                  " ON p.id = s.partition_id JOIN queen.queues AS q ON q.id = p.queue_id"
                  " WHERE q.name = 'old'")
    assert left == 5000 - row["retention"]["segments_deleted"]
    assert db.one("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'") == 0


def test_retention_alone(db, broker):
    fill(db, queue="old", segments=50)
    row = broker("--retention", "--duration", "1", "--json").object
    assert row["retention"]["segments_deleted"] == 50
    assert row["pushes"] == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_with_its_result(db, broker, number):
    process = broker.start("--queue", "q,groups=g:fast+s:slow", "--retention", "--json")
    wait_for(lambda: db.one("SELECT count(*) FROM pg_class WHERE relname = 'log_segments'")
             and db.one("SELECT count(*) FROM queen.log_segments") > 20)
    process.send_signal(number)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 0, err
    assert json.loads(out)["pushes"] >= 20
    assert db.one(INVARIANT) == 0


def test_outlives_its_connections(db, broker):
    process = broker.start("--queue", "q,groups=g:fast", "--rate", "50", "--duration", "4", "--json",
                           "--retention", "--set", "interval_ms=100")
    wait_for(lambda: db.one("SELECT count(*) FROM queen.log_segments") > 10)
    db.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
           " WHERE pid <> pg_backend_pid() AND datname = current_database()")
    before = db.one("SELECT count(*) FROM queen.log_segments")
    out, _ = process.communicate(timeout=20)
    assert process.returncode == 0
    assert db.one("SELECT count(*) FROM queen.log_segments") > before + 20
    assert json.loads(out)["retention"]["cycles"] > 5


@pytest.mark.parametrize(
    "words",
    [[], ["--queue", "q", "word"], ["--queue", "q", "--drain"], ["--queue", "q", "--set", "a=b"],
     ["--queue", "q", "--rate", "fast"]],
)
def test_wrong_command_lines(db, broker, words):
    result = broker(*words)
    assert result.code == 2, result
    assert "--help" in result.err


def test_retention_that_can_never_begin_is_refused(db, broker):
    """Else the loop would try for ever, and say nothing."""
    result = broker("--retention", "--duration", "2", "--set", "pooler=transaction")
    assert result.code == 1, result
    assert "option gate" in result.err and result.out == ""


@pytest.mark.parametrize("spec", ["", "q,colour=red", "q,partitions=x", "q,groups=a:b", "q*0"])
def test_wrong_queue_specs(db, broker, spec):
    result = broker("--queue", spec)
    assert result.code == 1, result
    assert result.err.startswith("broker: --queue: ")
