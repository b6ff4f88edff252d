"""E9, E10, L2, L11: rows and parameters that nothing can be reckoned from."""

from datetime import timedelta

import psycopg2
import pytest

from event.outbox import ARMS, DAY, WINDOW

OLD = WINDOW + DAY
MOMENTS = ("infinity", "-infinity", "294276-12-30", "9999-01-01", "0044-03-15 BC")
FORMS = ({}, {"window": 60}, {"policy": "succeeded"}, {"policy": "settled"}, {"policy": "someday"})


@pytest.mark.parametrize("moment", MOMENTS)
def test_E9_poison_is_left_by_every_arm_counted_and_does_not_stop_the_rest(outbox, moment):
    poison = {outbox.event("succeeded", recorded=moment, **form) for form in FORMS}
    good = {outbox.event("succeeded", age=OLD, **form) for form in FORMS}
    counts = outbox.prune()
    assert outbox.events() == poison
    assert sum(counts[arm]["poison"] for arm in ARMS) == len(poison)
    assert sum(counts[arm]["events"] for arm in ARMS) == len(good)


@pytest.mark.parametrize("moment", MOMENTS)
def test_E9_the_index_accepts_poison_with_the_longest_window(outbox, moment):
    event = outbox.event(recorded=moment, window=2147483647)
    outbox.sql("UPDATE {event} SET recorded_at = now() WHERE id = %s", event)
    outbox.sql("UPDATE {event} SET recorded_at = %s WHERE id = %s", moment, event)
    assert outbox.pruned() == set()


def test_E9_the_last_and_first_dates_that_count(outbox):
    first = outbox.event("succeeded", recorded="0001-01-01 00:00:00+00")
    own = outbox.event("succeeded", recorded="0001-01-01 00:00:00+00", window=1)
    last = outbox.event("succeeded", recorded="9998-12-31 23:59:59+00", window=2147483647)
    assert outbox.pruned() == {first, own}
    assert outbox.events() == {last}


@pytest.mark.parametrize("window", [0, -1, -2147483648])
def test_E9_a_window_below_one_second_is_poison(outbox, window):
    for constraint in outbox.sql(
        "SELECT conname FROM pg_constraint WHERE conrelid = '{event}'::regclass AND contype = 'c'"
    ):
        outbox.sql(f'ALTER TABLE {outbox.event_table} DROP CONSTRAINT "{constraint[0]}"')
    event = outbox.event("succeeded", age=OLD, window=window)
    counts = outbox.prune()
    assert outbox.events() == {event}
    assert counts["own_window"]["poison"] == 1


def test_E8_reading_tolerates_a_window_beside_a_policy(django):
    event = django.event("succeeded", age=60, window=3600, policy="settled")
    other = django.event("succeeded", "dead", age=7200, window=3600, policy="succeeded")
    assert django.pruned() == {event, other}


def test_E9_poison_is_counted_once_a_run(outbox):
    outbox.event("succeeded", recorded="infinity")
    for _ in range(5):
        outbox.event("succeeded", age=OLD)
    answers = outbox.drain("default_window", rows=2)
    assert len(answers) > 1
    assert [answer["poison"] for answer in answers] == [1] + [0] * (len(answers) - 1)


def test_E10_a_negative_default_window_is_refused(outbox):
    outbox.event("succeeded", age=OLD)
    for arm in ARMS:
        with pytest.raises(psycopg2.errors.InvalidParameterValue, match="delete the future"):
            outbox.step(arm, window=-1)
    assert len(outbox.events()) == 1


@pytest.mark.parametrize("window", [2**31, 2**32 + 1, 10**12, 9 * 10**18, 2**63 - 1])
def test_B28_a_window_too_long_to_subtract_never_deletes(outbox, window):
    outbox.event("succeeded", recorded="0001-01-01 00:00:00+00")
    outbox.event("succeeded", recorded="1970-01-01")
    kept = outbox.events() if window > 10**11 else set()
    outbox.prune(window=window)
    if window > 10**11:
        assert outbox.events() == kept
    else:
        assert outbox.step("default_window", window=window)["done"]


def test_L2_no_default_window_switches_its_arm_off(outbox):
    plain = outbox.event("succeeded", age=OLD)
    own = outbox.event("succeeded", age=OLD, window=60)
    assert outbox.pruned(window=None) == {own}
    assert outbox.events() == {plain}


def test_L2_no_clock_deletes_nothing(outbox):
    outbox.event("succeeded", policy="settled")
    for arm in ARMS:
        answer = outbox.one("SELECT {schema}.event_prune_step_v1(%s, NULL, %s, 10)", arm, WINDOW)
        assert answer["done"] and answer["events"] == 0
    assert len(outbox.events()) == 1


@pytest.mark.parametrize("clock", ["infinity", "-infinity"])
def test_L2_a_clock_that_is_not_finite_is_refused(outbox, clock):
    outbox.event("succeeded", age=OLD)
    with pytest.raises(psycopg2.errors.InvalidParameterValue, match="finite"):
        outbox.step("default_window", now=clock)


@pytest.mark.parametrize(
    "clock", ["294276-12-31", "4713-01-02 BC", "4714-11-24 00:00:00+00 BC", "0001-01-01"]
)
def test_L2_an_absurd_clock_is_survived(outbox, clock):
    outbox.event("succeeded", recorded="infinity")
    for arm in ARMS:
        outbox.step(arm, now=clock)
    assert len(outbox.events()) == 1


@pytest.mark.parametrize("arm", [None, "", "someday", "SUCCEEDED"])
def test_E7_an_unknown_arm_is_refused(outbox, arm):
    with pytest.raises(psycopg2.errors.InvalidParameterValue, match="no arm"):
        outbox.step(arm)


@pytest.mark.parametrize(
    "after",
    [
        "",
        "x",
        "settled",
        "settled|||",
        "settled|1|2|3|4",
        "settled|2026-02-30 00:00:00.000000|1||",
        "settled|||2026-13-01 00:00:00.000000|",
        "settled|0000-01-01 00:00:00.000000|1||",
        "settled|2026-02-01 00:00:00.000000|9999999999999999999||",
        "settled|2026-02-01 00:00:00.000000|1||-9999999999999999999",
        "succeeded|2026-02-30 00:00:00.000000|1||",
    ],
)
def test_E5_a_cursor_that_no_step_returned_is_refused(outbox, after):
    with pytest.raises(psycopg2.errors.InvalidParameterValue, match="cannot go on"):
        outbox.step("settled", after=after)


def test_E5_the_cursor_of_another_arm_begins_anew(outbox):
    event = outbox.event("succeeded", age=OLD)
    after = outbox.step("settled")["last"]
    assert outbox.step("default_window", after=after)["events"] == 1
    assert event not in outbox.events()


@pytest.mark.parametrize("level", ["REPEATABLE READ", "SERIALIZABLE"])
def test_L11_another_isolation_level_is_refused(outbox, level):
    outbox.event("succeeded", age=OLD)
    with outbox.db.connect(autocommit=False).cursor() as cursor:
        cursor.execute(f"SET TRANSACTION ISOLATION LEVEL {level}")
        with pytest.raises(psycopg2.Error) as refused:
            cursor.execute("SELECT outbox.event_prune_step_v1('default_window', now(), 1, 1)")
        cursor.connection.rollback()
    assert refused.value.pgcode == "QR004"
    assert "READ COMMITTED" in refused.value.diag.message_hint
    assert len(outbox.events()) == 1


def test_B57_milliseconds_for_seconds_only_ever_keep_more(outbox):
    outbox.event("succeeded", age=OLD)
    assert outbox.pruned(window=WINDOW * 1000) == set()


def test_E1_an_event_recorded_in_the_future_waits_for_its_window(outbox):
    outbox.event("succeeded", age=-DAY)
    outbox.event("succeeded", age=-DAY, window=60)
    policy = outbox.event("succeeded", age=-DAY, policy="settled")
    assert outbox.pruned(window=0) == {policy}
    assert len(outbox.pruned(window=0, now=outbox.now + timedelta(days=2))) == 2
