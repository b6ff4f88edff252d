"""Partitions that their slowest group holds: out of the list, watched, and let go in time (L19)."""

import pytest

from sql.floors_client import Client, Cycle
from sql.floors_support import cutoffs, floors, listed, writes
from sql.log_support import DAY, Log


@pytest.fixture
def log(db):
    return Log(db)


@pytest.fixture
def client(db):
    return Client(db)


@pytest.fixture
def held(log, client):
    """Three old segments, of which the slowest group has consumed one."""
    pid = log.partition(queue=log.queue(retention_enabled=True, completed_retention_seconds=DAY))
    log.segments(pid, [5 * DAY] * 3, sidecar=False)
    log.consumer(pid, 9, "slow")
    log.consumer(pid, 29, "fast")
    assert Cycle(client).run() == 1
    return pid


def test_L19_a_partition_that_its_slowest_group_holds_leaves_the_list(log, client, held):
    assert floors(log, held, "pinned_group", "pinned_offset") == ("slow", "19")
    assert listed(client) == {}
    assert client.pinned()[0] == []


def test_L19_pinned_is_reported_once_with_the_group(log, client):
    pid = log.partition(queue=log.queue(retention_enabled=True, completed_retention_seconds=DAY))
    log.segments(pid, [5 * DAY] * 3, sidecar=False)
    log.consumer(pid, 9, "slow")
    cycle = Cycle(client)
    log.consumer(pid, 5, "slower")
    cycle.run()
    reports = [(row.state, row.consumer_group) for row in cycle.reports]
    assert ("pinned", "slower") in reports
    cycle.reports.clear()
    cycle.run()
    assert cycle.reports == []


def test_L19_old_rows_that_nobody_consumes_are_pinned_too(log, client):
    pid = log.partition(queue=log.queue(retention_enabled=True, completed_retention_seconds=DAY))
    log.segments(pid, [5 * DAY], sidecar=False)
    cycle = Cycle(client)
    assert cycle.run() == 0
    assert floors(log, pid, "pinned_group", "pinned_offset") == (None, "9")
    log.consumer(pid, 9, "late")
    assert cycle.run() == 1


def test_L19_a_pinned_partition_that_is_dropped_is_forgotten(log, client, held):
    alone = log.partition(queue=log.queue(retention_enabled=True, completed_retention_seconds=DAY))
    log.segments(alone, [5 * DAY], sidecar=False)
    Cycle(client).run()
    log.sql("DELETE FROM {q}.log_partitions")
    Cycle(client).run()
    assert log.one("SELECT count(*) FROM {q}.retention_floors") == 0


@pytest.mark.parametrize("hinted", [False, True])
def test_L19_B56_a_consumer_that_catches_up_is_served_by_the_recheck(log, client, held, hinted):
    cycle = Cycle(client)
    cycle.run()
    log.sql("UPDATE {q}.log_consumers SET committed = 19 WHERE consumer_group = 'slow'")
    assert cycle.run(recheck=False) == 0
    assert client.pinned()[0] == [held]
    assert cycle.run(full=not hinted) == 1
    assert log.bases(held) == [20]
    assert floors(log, held, "pinned_group", "pinned_offset") == ("slow", "29")


def test_L19_a_group_that_goes_away_releases(log, client, held):
    log.sql("DELETE FROM {q}.log_consumers WHERE consumer_group = 'slow'")
    assert Cycle(client).run() == 2


def test_L19_another_group_that_holds_is_named_instead(log, client, held):
    log.sql("UPDATE {q}.log_consumers SET committed = 15")
    log.sql("UPDATE {q}.log_consumers SET committed = 29 WHERE consumer_group = 'slow'")
    assert Cycle(client).run() == 0
    assert floors(log, held, "pinned_group") == ("fast",)


@pytest.mark.parametrize("rule", ["retention_seconds", "max_wait_time_seconds"])
@pytest.mark.parametrize("hinted", [False, True])
def test_L19_a_rule_that_heeds_no_consumer_reaches_a_pinned_partition_at_once(
    log, client, held, rule, hinted
):
    cycle = Cycle(client)
    cycle.run()
    log.sql(f"UPDATE {{q}}.queues SET {rule} = 86400")
    assert cycle.run(recheck=False, full=not hinted) == 2


def test_L19_a_partition_whose_rule_2_is_gone_is_pinned_no_longer(log, client, held):
    log.sql("UPDATE {q}.queues SET retention_enabled = false")
    cycle = Cycle(client)
    assert cycle.run() == 0
    assert floors(log, held, "pinned_since") == (None,)


def test_L19_what_a_policy_released_is_found_under_the_next_past_the_hints(log, client, held):
    """Let go while nothing asks for it, it is filed again below where looks begin."""
    cycle = Cycle(client)
    cycle.run()
    log.sql("UPDATE {q}.queues SET retention_enabled = false")
    cycle.run()
    log.sql("UPDATE {q}.queues SET retention_enabled = true, retention_seconds = 86400")
    assert cycle.run() == 2


def test_L19_pinned_partitions_cost_no_step_and_no_write(log, client):
    queue = log.queue(retention_enabled=True, completed_retention_seconds=DAY)
    pids = [log.partition(queue=queue) for _ in range(30)]
    for pid in pids:
        log.segments(pid, [5 * DAY], sidecar=False)
        log.consumer(pid, 3)
    cycle = Cycle(client)
    cycle.run()
    assert client.steps == 0  # the first look was a probe, not a step
    before = writes(log)
    for _ in range(3):
        assert cycle.run() == 0 and client.steps == 0
    assert writes(log) == before


def test_L19_the_recheck_pages_through_all_of_them(log, client):
    queue = log.queue(retention_enabled=True, completed_retention_seconds=DAY)
    pids = sorted(log.partition(queue=queue) for _ in range(7))
    for pid in pids:
        log.segments(pid, [5 * DAY], sidecar=False)
        log.consumer(pid, 3)
    Cycle(client).run()
    log.sql("UPDATE {q}.log_consumers SET committed = 9")
    found, looked, after = [], [], None
    while True:
        page, end = client.pinned(after=after, limit=3)
        found += page
        looked.append(end.looked)
        after = end.last
        if after is None:
            break
    assert found == pids and looked == [3, 3, 1]


def test_L19_both_rules_of_a_due_partition_are_given(log, client):
    pid = log.partition(
        queue=log.queue(
            retention_enabled=True, retention_seconds=9 * DAY, completed_retention_seconds=DAY
        )
    )
    log.segments(pid, [5 * DAY], sidecar=False)
    log.consumer(pid, 9)
    client.refresh([pid])
    assert cutoffs(listed(client)[pid]) == ["all", "completed"]
