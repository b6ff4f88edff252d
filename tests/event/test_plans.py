"""E5: what an idle prune reads, whatever the planner believes; what a long owed prefix costs."""

import collections
import re

import pytest

from event.outbox import ARMS, DAY, WINDOW

HISTORY = 9900
HELD = 100

# Idle by every arm: history inside its window, own windows that last, dead letters that hold.
POPULATION = """
INSERT INTO {event} (name, recorded_at, retention_seconds, delete_when, suppressed_reason)
SELECT 'e', now() - n * interval '10 s', CASE WHEN n % 3 = 0 THEN 30 * 86400 END,
    CASE WHEN n % 99 = 1 THEN 'succeeded' ELSE '' END, ''
FROM generate_series(1, {history}) AS n
"""
DELIVERIES = """
INSERT INTO {delivery} (event_id, receiver_key, status, succeeded_at)
SELECT e.id, 'r' || k,
    CASE WHEN k = 1 AND e.delete_when = 'succeeded' THEN 'dead' ELSE 'succeeded' END, now()
FROM {event} AS e, generate_series(1, 4) AS k
"""


def populate(outbox):
    outbox.db.sql(outbox.named(POPULATION.replace("{history}", str(HISTORY))))
    outbox.db.sql(outbox.named(DELIVERIES))


class Watch:
    """A session whose every plan is told, those inside functions too."""

    def __init__(self, outbox):
        self.outbox = outbox
        self.connection = outbox.db.connect()
        self.connection.notices = collections.deque()  # the usual list forgets all but 50
        self.cursor = self.connection.cursor()
        self.run("LOAD 'auto_explain'")
        for name, value in {
            "log_min_duration": "0",
            "log_nested_statements": "on",
            "log_analyze": "on",
            "log_timing": "off",
            "log_buffers": "on",
            "log_level": "notice",
        }.items():
            self.run(f"SET auto_explain.{name} = {value}")

    def run(self, text, *args):
        self.connection.notices.clear()
        self.cursor.execute(text, args or None)
        return self.cursor.fetchall() if self.cursor.description else []

    def step(self, arm, after=None, window=WINDOW):
        """The answer, the plans of the statements inside, and the buffers they read together."""
        [(answer,)] = self.run(
            "SELECT outbox.event_prune_step_v1(%s, now(), %s, 5000, %s)", arm, window, after
        )
        plans = [notice for notice in self.connection.notices if "plan:" in notice]
        outermost = [plan for plan in plans if "Query Text: SELECT outbox.event_prune_step" in plan]
        assert len(outermost) == 1
        found = re.search(r"Buffers: shared hit=(\d+)(?: read=(\d+))?", outermost[0])
        return answer, plans, int(found[1]) + int(found[2] or 0) if found else 0


def idle(watch, limit):
    """Steps every arm twice, the second time with everything cached, and looks at what was done."""
    for arm in ARMS:
        watch.step(arm)
        answer, plans, buffers = watch.step(arm)
        assert answer["done"] and answer["events"] == 0
        for plan in plans:
            assert "Seq Scan" not in plan and "Bitmap" not in plan, plan
            for rows in re.findall(r"\(actual rows=(\d+) loops=1\)", plan):
                assert int(rows) <= HELD + 1, plan
            for removed in re.findall(r"Rows Removed by Filter: (\d+)", plan):
                assert int(removed) <= 4, plan
        assert buffers <= limit, (arm, buffers)


@pytest.mark.parametrize("mode", ["auto", "force_generic_plan", "force_custom_plan"])
@pytest.mark.parametrize("analyzed", [True, False])
def test_E5_an_idle_prune_reads_no_history(outbox, mode, analyzed):
    populate(outbox)
    if analyzed:
        outbox.sql("VACUUM ANALYZE {event}")
        outbox.sql("VACUUM ANALYZE {delivery}")
    watch = Watch(outbox)
    watch.run(f"SET plan_cache_mode = {mode}")
    idle(watch, 900)


def test_E5_plans_made_while_the_tables_were_empty_hold(outbox):
    outbox.sql("ANALYZE {event}")
    outbox.sql("ANALYZE {delivery}")
    watch = Watch(outbox)
    for arm in ARMS * 8:
        watch.step(arm)
    populate(outbox)
    idle(watch, 900)


def test_E5_statistics_of_another_population(outbox):
    # As analyzed when everything was owed and old; then all of it changed.
    old = POPULATION.replace("now() -", "now() - interval '200 days' -")
    outbox.db.sql(outbox.named(old.replace("{history}", str(HISTORY))))
    outbox.db.sql(outbox.named(DELIVERIES.replace("'succeeded' END", "'pending' END")))
    outbox.sql("ANALYZE {event}")
    outbox.sql("ANALYZE {delivery}")
    outbox.sql("DELETE FROM {delivery}")
    outbox.sql("DELETE FROM {event}")
    outbox.sql("VACUUM {event}")
    outbox.sql("VACUUM {delivery}")
    populate(outbox)
    idle(Watch(outbox), 900)


@pytest.mark.parametrize("analyzed", [True, False])
@pytest.mark.parametrize("columns", ["status", "status, available_at", "event_id"])
def test_E5_a_hosts_own_indexes_mislead_nobody(outbox, columns, analyzed):
    """Such as claims are made by; on tables that were empty when they were last looked at."""
    outbox.sql(f"CREATE INDEX hosts ON {{delivery}} ({columns})")
    if analyzed:
        outbox.sql("ANALYZE {event}")
        outbox.sql("ANALYZE {delivery}")
    populate(outbox)
    watch = Watch(outbox)
    idle(watch, 900)
    events = {outbox.event("succeeded", "dead", age=WINDOW + DAY) for _ in range(5)}
    answer, plans, _ = watch.step("default_window")
    assert (answer["events"], answer["deliveries"]) == (5, 10)
    assert not events & outbox.events()
    for plan in plans:
        for removed in re.findall(r"Rows Removed by Filter: (\d+)", plan):
            assert int(removed) <= HELD + 10, plan


def test_E5_own_windows_alive_cost_nothing(own):
    populate(own)
    watch = Watch(own)
    watch.step("own_window")
    few = watch.step("own_window")[2]
    own.sql(
        "INSERT INTO {event} (name, recorded_at, retention_seconds)"
        " SELECT 'e', now() - n * interval '1 s', 30 * 86400 FROM generate_series(1, 50000) AS n"
    )
    watch.step("own_window")
    assert watch.step("own_window")[2] <= few + 4


@pytest.mark.parametrize("window", ["30 * 86400", "1000 * 86400"], ids=["young", "old"])
def test_E5_own_windows_cost_the_default_window_nothing(outbox, window):
    """Those older than the default window neither, which it would otherwise read through."""
    populate(outbox)
    outbox.sql("VACUUM ANALYZE {event}")
    age = "200 days" if window.startswith("1000") else "1 day"
    watch = Watch(outbox)
    figures = []
    for number in (3000, 27000):
        outbox.sql(
            "INSERT INTO {event} (name, recorded_at, retention_seconds, delete_when,"
            f" suppressed_reason) SELECT 'e', now() - interval '{age}' - n * interval '1 s',"
            f" {window}, '', '' FROM generate_series(1, %s) AS n",
            number,
        )
        for arm in ARMS:
            watch.step(arm)
        steps = [watch.step(arm) for arm in ARMS]
        assert all(answer["done"] and answer["events"] == 0 for answer, _, _ in steps)
        figures.append([buffers for _, _, buffers in steps])
    for few, many in zip(*figures):
        assert many <= few + 6, figures


def test_E5_an_owed_prefix_is_not_read_by_every_step(outbox):
    old = WINDOW + 10 * DAY
    outbox.db.sql(
        outbox.named(
            "INSERT INTO {event} (name, recorded_at, delete_when, suppressed_reason)"
            f" SELECT 'e', now() - interval '{old} s' + n * interval '1 s', '', ''"
            " FROM generate_series(1, 23000) AS n"
        )
    )
    outbox.db.sql(
        outbox.named(
            "INSERT INTO {delivery} (event_id, receiver_key, status) SELECT e.id, 'r',"
            " CASE WHEN row_number() OVER (ORDER BY e.id) <= 20000 THEN 'pending' ELSE 'dead' END"
            " FROM {event} AS e"
        )
    )
    watch = Watch(outbox)
    answer, _, first = watch.step("default_window")
    assert answer["events"] == 500
    answer, _, second = watch.step("default_window", after=answer["last"])
    assert answer["events"] == 500
    # What the delete itself reads is in both, what the look over the prefix reads only in one.
    assert second < first - 10000
    total = 1000
    while not answer["done"]:
        answer = watch.step("default_window", after=answer["last"])[0]
        total += answer["events"]
    assert total == 3000
    assert len(outbox.events()) == 20000


def test_E5_events_of_one_instant_are_not_read_again(own):
    own.db.sql(
        own.named(
            "INSERT INTO {event} (name, recorded_at)"
            " SELECT 'e', now() - interval '200 days' FROM generate_series(1, 12000)"
        )
    )
    own.db.sql(
        own.named(
            "INSERT INTO {delivery} (event_id, receiver_key, status)"
            " SELECT e.id, 'r', CASE WHEN e.id <= 10000 THEN 'pending' ELSE 'dead' END"
            " FROM {event} AS e"
        )
    )
    watch = Watch(own)
    answer, _, first = watch.step("default_window")
    answer, _, second = watch.step("default_window", after=answer["last"])
    assert answer["events"] == 500
    assert second < first - 5000


def test_E5_a_run_may_begin_where_the_last_one_left_nothing(own):
    kept = own.event("succeeded", "pending", age=WINDOW + 2 * DAY)
    own.event("succeeded", age=WINDOW + 3 * DAY)
    own.event("succeeded", age=WINDOW + DAY)
    hint = own.drain("default_window")[-1]["last"]
    assert own.events() == {kept}
    own.sql("UPDATE {delivery} SET status = 'dead' WHERE status = 'pending'")
    assert own.step("default_window", after=hint)["events"] == 1


def test_E5_what_commits_late_below_the_hint_is_found_from_the_start(own):
    own.event("succeeded", policy="settled", age=60)
    hint = own.drain("settled")[-1]["last"]
    recent = own.event("succeeded", policy="settled", age=300)
    assert own.step("settled", after=hint)["events"] == 1
    ancient = own.event("succeeded", policy="settled", age=30 * DAY)
    assert own.step("settled", after=hint)["events"] == 0
    assert own.pruned() == {ancient}
    assert recent not in own.events()


@pytest.mark.slow
def test_E5_dead_index_entries_are_not_crawled_from_the_hint(own):
    own.sql(
        "INSERT INTO {event} (name, recorded_at)"
        " SELECT 'e', now() - interval '200 days' + n * interval '1 s'"
        " FROM generate_series(1, 20000) AS n"
    )
    with own.db.connect(autocommit=False).cursor() as snapshot:
        snapshot.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        snapshot.execute("SELECT 1")
        own.drain("default_window")
        hint = own.drain("default_window")[-1]["last"]
        watch = Watch(own)
        watch.step("default_window")
        crawled = watch.step("default_window")[2]
        skipped = watch.step("default_window", after=hint)[2]
        snapshot.connection.rollback()
    assert crawled > 50 + skipped
