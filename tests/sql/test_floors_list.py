"""The work lists: caps, turns, hints, pages, and one set of cutoffs for all of them (L17 to L19)."""

import pytest

from sql.floors_client import HINTS, Client, Cycle
from sql.floors_support import cutoffs, listed
from sql.log_support import DAY, Log


@pytest.fixture
def log(db):
    return Log(db)


@pytest.fixture
def client(db):
    return Client(db)


def crowd(log, sizes):
    """Queues with so many due partitions each; {queue: partitions}."""
    made = {}
    for size in sizes:
        queue = log.queue(retention_enabled=True, retention_seconds=DAY)
        made[queue] = [log.partition(queue=queue) for _ in range(size)]
        for pid in made[queue]:
            log.segments(pid, [5 * DAY], sidecar=False)
    return made


def test_L19_the_cap_is_per_queue_and_queues_take_turns(log, client):
    made = crowd(log, [9, 2, 9])
    client.refresh([pid for pids in made.values() for pid in pids])
    order = sorted(made)
    items, _ = client.due(cap=2)
    assert [item.filed_under for item in items] == [q for q in order for _ in range(2)]
    items, _ = client.due(cap=2, after=order[0])
    turned = order[1:] + order[:1]
    assert [item.filed_under for item in items] == [q for q in turned for _ in range(2)]
    assert client.due(cap=0)[0] and len(client.due(cap=1)[0]) == 3


@pytest.mark.parametrize("cap", [1, 2, 200])
def test_L19_a_cycle_serves_every_queue_whatever_the_cap(log, client, cap):
    made = crowd(log, [7, 1, 3])
    assert Cycle(client, cap).run() == sum(len(pids) for pids in made.values())


def test_L19_B49_partitions_left_out_do_not_hide_those_behind(log, client):
    made = crowd(log, [12])
    pids = next(iter(made.values()))
    client.refresh(pids)
    seen = set()
    while True:
        page = set(listed(client, cap=5, exclude=seen))
        if not page:
            break
        assert not page & seen
        seen |= page
    assert seen == set(pids)


def test_L18_hints_leave_room_for_what_was_left_out(log, client):
    made = crowd(log, [3])
    pids = next(iter(made.values()))
    client.refresh(pids[:2])
    items, end = client.due(exclude=pids)
    assert items == [] and end.hint_look
    hints = {name: end[name] for name in HINTS}
    assert set(listed(client, hints=hints)) == set(pids)


def test_L18_the_clock_is_told_where_nothing_is_due_and_where_there_is_nothing(log, client):
    before = log.one("SELECT now()")
    items, end = client.due()
    assert items == [] and before <= end.clock <= log.one("SELECT clock_timestamp()")
    assert client.due(clock=before)[1].clock == before
    row = client.call("worklist_scan", None, None, 10)[0]
    assert row.partition_id is None and row.clock > before


# --- the seed's list --------------------------------------------------------------------------

POLICIES = [
    dict(retention_enabled=True, retention_seconds=10, completed_retention_seconds=20),
    dict(retention_enabled=False, retention_seconds=10, completed_retention_seconds=2000),
    dict(retention_enabled=None, retention_seconds=10, max_wait_time_seconds=30),
    dict(retention_enabled=True, retention_seconds=None, completed_retention_seconds=None),
    dict(retention_enabled=True, retention_seconds=0, max_wait_time_seconds=-4),
    dict(retention_enabled=True, retention_seconds=-1, dedup_window_seconds=-1),
    dict(retention_enabled=True, retention_seconds=2147483647, dedup_window_seconds=2147483647),
    dict(retention_enabled=True, completed_retention_seconds=5000, dedup_window_seconds=0),
]


def test_L2_L8_L17_the_lists_and_the_floors_compute_the_same_cutoffs(log, client):
    queues = [log.queue(**policy) for policy in POLICIES]
    pids = [log.partition(queue=queue) for queue in queues]
    clock = log.clock
    scan = {row.partition_id: row for row in client.call("worklist_scan", clock, None, 1000)}
    again = {row.partition_id: row for row in client.call("worklist_by_id", clock, pids)}
    assert scan == again and set(scan) == set(pids)
    floors_say = {
        row[0]: row[1:]
        for row in log.sql(
            "SELECT queue_id::text, all_cutoff, completed_cutoff, txns_cutoff, max_wait_cutoff"
            " FROM {q}.retention_cutoffs_v1(%s, NULL)",
            clock,
        )
    }
    for row in scan.values():
        assert floors_say[row.queue_id] == tuple(row[c] for c in row if c.endswith("_cutoff"))

    def ages(number):
        row = scan[pids[number]]
        return [
            None if row[c] is None else int((clock - row[c]).total_seconds())
            for c in row
            if c.endswith("_cutoff")
        ]

    assert ages(0) == [10, 20, 3600, None]
    assert ages(1) == [None, None, 3600, None]
    assert ages(2) == [None, None, 3600, 30]
    assert ages(3) == [None, None, 3600, None]
    assert ages(4) == [None, None, 3600, None]
    assert ages(5) == [None, None, 900, None]
    assert ages(6) == [2147483647, None, 2147483647, None]
    assert ages(7) == [None, 5000, 5000, None]


@pytest.mark.parametrize("seconds", [210866803200 * 2, 10**18, 9 * 10**18])
def test_L2_B25_a_window_too_large_to_subtract_is_off(log, client, seconds):
    """A host may have wider columns than the contract's."""
    windows = ("retention", "completed_retention", "max_wait_time", "dedup_window")
    for column in [f"{window}_seconds" for window in windows]:
        log.sql(f"ALTER TABLE {{q}}.queues ALTER {column} TYPE bigint")
    queue = log.queue(
        retention_enabled=True,
        retention_seconds=seconds,
        completed_retention_seconds=seconds,
        max_wait_time_seconds=seconds,
    )
    pid = log.partition(queue=queue)
    log.segments(pid, [50 * DAY])
    calls = (("worklist_scan", (log.clock, None, 10)), ("worklist_by_id", (log.clock, [pid])))
    for name, args in calls:
        row = client.call(name, *args)[0]
        assert row.partition_id == pid and cutoffs(row) == []
    assert Cycle(client).run() == 0


def test_L17_the_scan_pages_by_key_and_says_when_it_ends(log, client):
    pids = sorted(log.partition() for _ in range(5))
    zero = "00000000-0000-0000-0000-000000000000"
    pids.insert(0, log.partition(pid=zero))
    seen, after = [], None
    for _ in range(3):
        page = client.call("worklist_scan", None, after, 2)
        seen += [row.partition_id for row in page]
        after = page[-1].partition_id
    assert seen == pids
    end = client.call("worklist_scan", None, after, 2)
    assert [row.partition_id for row in end] == [None]


def test_B66_partitions_dropped_since_are_left_out_of_a_page_read_again(log, client):
    pids = [log.partition() for _ in range(3)]
    log.sql("DELETE FROM {q}.log_partitions WHERE id = %s", pids[1])
    rows = client.call("worklist_by_id", log.clock, pids)
    assert [row.partition_id for row in rows] == sorted([pids[0], pids[2]])
