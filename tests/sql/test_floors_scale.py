"""What the library's statements read at 100,000 partitions: buffers, not milliseconds (L17 to L19,
L4). Every statement that a cycle sends is here; the prune's, which is another engine's, has its own
tests.
"""

import json
import os

import pytest

from pg import install, qret
from sql.floors_client import HINTS, Client, Cycle
from sql.log_support import DAY, Log

PARTITIONS = 100_000
QUEUES = 20
HALF = "80000000-0000-0000-0000-000000000000"
A_QUEUE = 16  # buffers of discovery a queue when nothing is due
CATALOG = 60  # what a first call in a session may look up

SITUATIONS = {
    "fresh statistics": ["ANALYZE queen.log_partitions, queen.retention_floors, queen.queues"],
    "generic plans": ["SET plan_cache_mode = force_generic_plan"],
    "custom plans": ["SET plan_cache_mode = force_custom_plan"],
    "stale statistics": [
        "UPDATE pg_class SET reltuples = 0, relpages = 0"
        " WHERE relname ~ '^(log_partitions|retention_floors|log_segments|log_txns|queues)'",
    ],
    "no statistics": [
        "DELETE FROM pg_statistic WHERE starelid IN ('queen.log_partitions'::regclass,"
        " 'queen.retention_floors'::regclass, 'queen.log_segments'::regclass)",
        "UPDATE pg_class SET reltuples = -1, relpages = 0"
        " WHERE relname ~ '^(log_partitions|retention_floors|log_segments|log_txns|queues)'",
    ],
}


WITHOUT_STATISTICS = {"stale statistics", "no statistics"}

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def big(cluster):
    """100,000 partitions, known to be idle; used by all tests below.

    Half of them hold a fresh segment, half are held by their slowest group.
    """
    database = cluster.create_database(("broker", "log"))
    log = Log(database)
    queues = [
        log.queue(
            retention_enabled=True,
            retention_seconds=9 * DAY,
            completed_retention_seconds=DAY,
            max_wait_time_seconds=5 * DAY if n % 3 else 0,
        )
        for n in range(QUEUES)
    ]
    # Filed as a refresh of all of them would file them, which has its own test below.
    log.sql("ALTER TABLE {q}.log_partitions DISABLE TRIGGER retention_floors_inserted")
    log.sql(
        "INSERT INTO {q}.log_partitions (queue_id, name, last_offset)"
        " SELECT q::uuid, n::text, 9 FROM unnest(%s) AS q, generate_series(1, %s) AS n",
        queues,
        PARTITIONS // QUEUES,
    )
    log.sql("ALTER TABLE {q}.log_partitions ENABLE ALWAYS TRIGGER retention_floors_inserted")
    log.sql(
        "INSERT INTO {q}.log_segments (partition_id, base_offset, end_offset, created_at, blob)"
        " SELECT id, 0, 9, now() - CASE WHEN id < %s THEN interval '2 days' ELSE '0' END, 'x'"
        " FROM {q}.log_partitions",
        HALF,
    )
    log.sql(
        "INSERT INTO {q}.log_txns (partition_id, base_offset, end_offset, created_at, hashes)"
        " SELECT id, 0, 9, now(), 'x' FROM {q}.log_partitions"
    )
    log.sql(
        "INSERT INTO {q}.log_consumers (partition_id, consumer_group, committed)"
        " SELECT id, 'slow', 3 FROM {q}.log_partitions WHERE id < %s",
        HALF,
    )
    log.sql(
        "INSERT INTO {q}.retention_floors (partition_id, queue_id, segments_floor, txns_floor,"
        " pinned_since, pinned_group, pinned_offset)"
        " SELECT p.id, p.queue_id, s.created_at, s.created_at, c.created_at, c.consumer_group,"
        " CASE WHEN c.committed = 3 THEN 9 END"
        " FROM {q}.log_partitions AS p JOIN {q}.log_segments AS s ON s.partition_id = p.id"
        " LEFT JOIN {q}.log_consumers AS c ON c.partition_id = p.id"
    )
    log.sql("UPDATE {q}.queues SET dedup_window_seconds = %s", 4 * DAY)
    log.sql("VACUUM ANALYZE")
    yield log
    log.connection.close()
    cluster.close_connections()
    database.drop()


@pytest.fixture(params=list(SITUATIONS))
def client(big, request):
    client = Client(big.db)
    for text in SITUATIONS[request.param]:
        client.sql(text)
    yield client
    client.connection.close()
    if request.param in WITHOUT_STATISTICS:
        big.sql("ANALYZE {q}.log_partitions, {q}.retention_floors, {q}.log_segments, {q}.queues")


def nodes(plan):
    yield plan
    for child in plan.get("Plans", []):
        yield from nodes(child)


def warm(client, name, *args):
    for _ in range(2):
        client.call(name, *args)
    return client.buffers(name, *args)


def some_ids(log, count):
    return [
        row[0]
        for row in log.sql(
            "SELECT partition_id::text FROM {q}.retention_floors ORDER BY"
            " md5(partition_id::text) LIMIT %s",
            count,
        )
    ]


NO_HINTS = [None] * len(HINTS)


def test_L18_an_idle_look_reads_a_handful_a_queue(client):
    used, _ = warm(client, "worklist_due", None, 200, None, None, *NO_HINTS)
    assert used <= A_QUEUE * QUEUES
    end = client.due()[1]
    hints = [end[name] for name in HINTS]
    used, _ = warm(client, "worklist_due", None, 200, None, None, *hints)
    assert used <= A_QUEUE * QUEUES


def test_B24_ten_due_among_all_of_them_are_found_for_a_handful_each(client, big):
    ids = some_ids(big, 10)
    big.sql(
        "UPDATE {q}.retention_floors SET segments_floor = now() - interval '10 days'"
        " WHERE partition_id = ANY (%s::uuid[])",
        ids,
    )
    used, _ = warm(client, "worklist_due", None, 200, None, None, *NO_HINTS)
    assert {item.partition_id for item in client.due()[0]} == set(ids)
    assert used <= A_QUEUE * QUEUES + 10 * 12
    client.refresh(ids)
    assert client.due()[0] == []


def test_L17_a_page_of_the_scan_reads_its_page(client):
    used, plan = warm(client, "worklist_scan", None, HALF, 1000)
    assert used <= 1000 * 4
    kinds = {(node["Node Type"], node.get("Relation Name")) for node in nodes(plan)}
    assert ("Seq Scan", "log_partitions") not in kinds
    assert ("Bitmap Heap Scan", "log_partitions") not in kinds


def test_L14_a_page_read_again_by_id_reads_its_page(client, big):
    ids = some_ids(big, 1000)
    used, plan = warm(client, "worklist_by_id", big.clock, ids)
    assert used <= 1000 * 5 + CATALOG
    assert not any(
        node["Node Type"] == "Seq Scan" and node.get("Relation Name") == "log_partitions"
        for node in nodes(plan)
    )


def test_L18_a_refresh_of_a_few_reads_a_few(client, big):
    ids = some_ids(big, 200)
    used, _ = warm(client, "floors_refresh", ids, None)
    # Floors, partition, head and sidecar head: four look-ups of three or four buffers.
    assert used <= 200 * 18 + CATALOG
    assert client.refresh(ids) == []


def test_L18_a_page_of_the_walk_reads_its_page(client):
    used, _ = warm(client, "floors_walk", None, HALF, 200)
    assert used <= 200 * 24 + 2000 * 3 + CATALOG
    assert client.walk(after=HALF, limit=200)[0] == []


def test_L19_B56_pinned_partitions_are_rechecked_for_a_few_buffers_each(client):
    used, _ = warm(client, "floors_pinned", None, None, 2000)
    assert client.pinned(limit=2000)[1].looked == 2000
    assert client.pinned(limit=2000)[0] == []
    assert used <= 2000 * 9 + CATALOG


A_STEP = 90  # a lock, a look, one row, an audit row, and what calls that were undone left of theirs

# Statements that no test above explains: arguments, and the most buffers of a second call.
# {pid} is a partition whose one segment is two days old.
OTHERS = {
    "settings": ("false, 30000, 0, 200, 30000", 10),
    "facts": ("true", 200),
    "schema_version": ("'log'", 4),
    "gate_take": ("737001", 2),
    "gate_release": ("737001", 2),
    "lease_claim": ("'me', 60000, 60000, 737001", 20),
    "lease_barrier": ("737001", 2),
    "lease_fence": ("{fence}, 737001", 20),
    "lease_renew": ("{fence}, 60000", 20),
    "lease_release": ("{fence}, false, true", 20),
    "overdue": ("now(), '{ids}'", 64 * 12),
    "step_retention_v1": ("'{pid}', {stale}, NULL, 1000, true", A_STEP),
    "step_retention_v2": ("'{pid}', {stale}, NULL, 1000, true", A_STEP),
    "step_max_wait_v1": ("'{pid}', {stale}, 1000, true", A_STEP),
    "step_max_wait_v2": ("'{pid}', {stale}, 1000, true", A_STEP),
    "step_txns_v1": ("'{pid}', now(), 1000, true", A_STEP),
    "step_txns_v2": ("'{pid}', now(), 1000, true", A_STEP),
    # It has no cursor, so it looks at every partition: one buffer each and no more.
    "step_cleanup_v1": ("{stale}, 1000", PARTITIONS * 2),
    "step_cleanup_v2": ("{stale}, 1000, '{half}'", 4000 * 6),
    "metrics_purge": ("{stale}, 1000", 10),
}
EXPLAINED = {
    "worklist_due",
    "worklist_scan",
    "worklist_by_id",
    "floors_refresh",
    "floors_pinned",
    "floors_walk",
}
NO_CYCLE = {"install_has_streams", "install_invalid_index", "install_object"}
ANOTHER_ENGINE = {"event_prune_step"}
METRICS = {
    "worker_metrics": "bucket_time",
    "queue_lag_metrics": "bucket_time",
    "queue_parked_replica": "bucket_time",
    "retention_history": "executed_at",
    "system_metrics": '"timestamp"',
}


def test_every_statement_of_a_cycle_is_explained():
    names = {name[: -len(".sql")] for name in os.listdir(os.path.join(install.SQL, "client")) if name.endswith(".sql")}
    assert names == set(OTHERS) | EXPLAINED | NO_CYCLE | ANOTHER_ENGINE


def statement(name, table=None):
    """A client statement for a log whose lease lives beside it."""
    found = install.tokens()
    for token in ("lease", "schema"):
        found[f"@{token}@"] = found["@log@"]
        found[f"@{token}_literal@"] = found["@log_literal@"]
    if table:
        found.update({"@table@": f"queen.{table}", "@column@": METRICS[table]})
    return install.substitute(install.client_text(name + ".sql"), found)


def used_by(client, name, arguments, table=None):
    """(buffers of a call that is not the session's first, plan); nothing it did remains."""
    client.sql(f"PREPARE explained AS {statement(name, table)}")
    execute = "EXECUTE explained" + (f" ({arguments})" if arguments else "")
    text = f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {execute}"
    for _ in range(3):
        client.sql("BEGIN")
        plan = client.sql(text)[0][0][0]["Plan"]
        client.sql("ROLLBACK")
    client.sql("DEALLOCATE explained")
    return plan["Shared Hit Blocks"] + plan["Shared Read Blocks"], plan


def arguments_of(client, text):
    ids = client.sql("SELECT id::text FROM queen.log_partitions ORDER BY id LIMIT 64")
    if "{fence}" in text:
        client.sql("SELECT queen.retention_lease_claim_v1('me', 600000, 1, 737001)")
    fence = client.sql("SELECT max(fence) FROM queen.retention_lease")[0][0]
    return text.format(
        pid=ids[0][0],
        ids="{" + ",".join(row[0] for row in ids) + "}",
        half=HALF,
        fence=fence,
        stale="now() - interval '1 day'",
    )


def test_L4_B21_every_other_statement_reads_what_it_must(client):
    for name, (text, most) in OTHERS.items():
        for table in METRICS if name == "metrics_purge" else [None]:
            used, plan = used_by(client, name, arguments_of(client, text), table)
            assert used <= most, (name, table, used)
            for node in nodes(plan):
                great = node.get("Relation Name") in ("log_partitions", "log_segments", "log_txns")
                assert not (great and node["Node Type"] == "Seq Scan"), (name, node)


def test_B24_a_cycle_over_all_of_them_with_ten_due(big):
    """The library's own: what is due goes, in a handful of round trips."""
    ids = [pid for pid in some_ids(big, 100) if pid > HALF][:10]
    big.sql(
        "UPDATE {q}.log_segments SET created_at = now() - interval '20 days'"
        " WHERE partition_id = ANY (%s::uuid[])",
        ids,
    )
    big.sql(
        "UPDATE {q}.retention_floors SET segments_floor = '-infinity'"
        " WHERE partition_id = ANY (%s::uuid[])",
        ids,
    )
    before = resident_kib()
    with qret.Context(big.db.dsn, partition_cleanup=False) as context:
        report = context.cycle()
    assert report["segments_deleted"] + report["max_wait_evicted"] == 10
    assert 10 <= report["partitions"] <= 20  # once a phase
    assert report["round_trips"] < 50
    assert resident_kib() - before < 20 * 1024


def resident_kib():
    """KiB of this process, which the library is part of."""
    with open("/proc/self/status", encoding="ascii") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))


def test_L18_B07_B23_P7_dead_entries_under_a_held_snapshot_are_not_crawled(big):
    """Everything was due and is raised while a snapshot is held, so nothing can be cleaned away."""
    client = Client(big.db)
    ours = "WHERE partition_id >= %s"
    age = (
        "UPDATE {q}.retention_floors"
        " SET segments_floor = now() - interval %s, txns_floor = now() "
    )
    big.sql(age + ours, "10 days", HALF)
    big.sql("VACUUM {q}.retention_floors")
    holder = big.db.connect(autocommit=False)
    with holder.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        cursor.execute("SELECT 1")
    big.sql(age + ours, "0", HALF)
    crawl, _ = warm(client, "worklist_due", None, 200, None, None, *NO_HINTS)
    end = client.due()[1]
    hints = [end[name] for name in HINTS]
    used, _ = warm(client, "worklist_due", None, 200, None, None, *hints)
    assert used <= A_QUEUE * QUEUES
    assert crawl > 20 * used  # the trap is real: a look from the start pays for it
    assert Cycle(client).run(full=True, recheck=False) == 0
    holder.rollback()
    # And once the snapshot is gone, and a transaction later, a look from the start cleans as it
    # goes.
    for _ in range(3):
        big.sql("SELECT pg_current_xact_id()")
        client.due()
    used, _ = client.buffers("worklist_due", None, 200, None, None, *NO_HINTS)
    assert used <= crawl / 10
    client.connection.close()


def test_B52_the_floors_of_a_busy_partition_stay_cheap_under_a_held_snapshot(big):
    client = Client(big.db)
    pid = some_ids(big, 1)[0]
    holder = big.db.connect(autocommit=False)
    with holder.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        cursor.execute("SELECT 1")
    for n in range(1000):
        big.sql(
            "UPDATE {q}.retention_floors SET segments_floor = %s - interval '1 hour' + %s *"
            " interval '1 ms'"
            " WHERE partition_id = %s",
            big.clock,
            n,
            pid,
        )
    end = client.due()[1]
    hints = [end[name] for name in HINTS]
    used, _ = warm(client, "worklist_due", None, 200, None, None, *hints)
    assert used <= A_QUEUE * QUEUES
    holder.rollback()


def test_L18_jit_is_off_whatever_the_session_says(big):
    """JIT would cost two hundred times what the query does."""
    client = Client(big.db)
    for name in ("jit_above_cost", "jit_inline_above_cost", "jit_optimize_above_cost"):
        client.sql(f"SET {name} = 0")
    client.sql("LOAD 'auto_explain'")
    for name, value in (
        ("auto_explain.log_min_duration", "0"),
        ("auto_explain.log_nested_statements", "on"),
        ("auto_explain.log_analyze", "on"),
        ("auto_explain.log_format", "json"),
        ("auto_explain.log_level", "notice"),
    ):
        client.sql(f"SET {name} = {value}")
    client.connection.notices.clear()
    client.due()
    client.pinned()
    inner = [text for text in client.connection.notices if "retention_floors AS f" in text]
    assert inner
    for text in inner:
        plan = json.loads(text[text.index("{") : text.rindex("}") + 1])
        assert "JIT" not in plan
    client.connection.close()
