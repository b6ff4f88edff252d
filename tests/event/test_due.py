"""When an event is due: the forms of retention, what counts as terminal, which arm takes what."""

from datetime import timedelta

import pytest

from event.outbox import ARMS, DAY, OWED, TERMINAL, WINDOW

OLD = WINDOW + DAY


@pytest.mark.parametrize("status", TERMINAL)
def test_E1_default_takes_old_settled(outbox, status):
    event = outbox.event("succeeded", status, age=OLD)
    assert outbox.pruned() == {event}
    assert outbox.deliveries() == 0


@pytest.mark.parametrize("status", OWED)
@pytest.mark.parametrize(
    "form", [{}, {"window": 60}, {"policy": "succeeded"}, {"policy": "settled"}]
)
def test_E1_owed_is_kept_by_every_form(outbox, status, form):
    outbox.event("succeeded", status, age=OLD, **form)
    outbox.event(status, age=OLD, **form)
    assert outbox.pruned() == set()
    assert outbox.deliveries() == 3


@pytest.mark.parametrize("status", ["", "unheard-of", "SUCCEEDED"])
@pytest.mark.parametrize(
    "form", [{}, {"window": 60}, {"policy": "succeeded"}, {"policy": "settled"}]
)
def test_E1_unknown_status_is_owed(outbox, status, form):
    outbox.event("succeeded", status, age=OLD, **form)
    assert outbox.pruned() == set()


def test_E1_window_young_events_stay(outbox):
    outbox.event("succeeded", age=WINDOW - DAY)
    outbox.event("dead", age=DAY, window=2 * DAY)
    outbox.event(age=DAY)
    assert outbox.pruned() == set()


def test_succeeded_goes_once_consumed(outbox):
    event = outbox.event("succeeded", "cancelled", "succeeded", policy="succeeded")
    counts = outbox.prune()
    assert event not in outbox.events()
    assert counts["succeeded"]["events"] == 1
    assert counts["succeeded"]["deliveries"] == 3


@pytest.mark.parametrize("status", ["dead", "orphaned"])
def test_succeeded_dead_letter_keeps_the_event_for_the_default_window(outbox, status):
    young = outbox.event("succeeded", status, policy="succeeded", age=WINDOW - DAY)
    old = outbox.event("succeeded", status, policy="succeeded", age=OLD)
    counts = outbox.prune()
    assert outbox.events() == {young}
    assert counts["succeeded"]["events"] == 0
    assert counts["default_window"]["events"] == 1
    assert old not in outbox.events()


@pytest.mark.parametrize("status", ["dead", "orphaned"])
def test_succeeded_dead_letter_can_be_requeued_and_ends_as_any_other(outbox, status):
    event = outbox.event("succeeded", status, policy="succeeded", age=DAY)
    assert outbox.pruned() == set()
    outbox.sql("UPDATE {delivery} SET status = 'pending', attempts = 0 WHERE status = %s", status)
    assert outbox.pruned() == set() and outbox.pruned(window=0) == set()
    outbox.sql(
        "UPDATE {delivery} SET status = 'succeeded', succeeded_at = %s WHERE status = 'pending'",
        outbox.now,
    )
    counts = outbox.prune()
    assert event not in outbox.events()
    assert counts["succeeded"]["events"] == 1


@pytest.mark.parametrize("policy", ["succeeded", "settled"])
def test_all_withdrawn_is_consumed(outbox, policy):
    event = outbox.event("cancelled", "cancelled", policy=policy)
    assert outbox.pruned() == {event}
    assert outbox.last_successes() == {}


@pytest.mark.parametrize("status", TERMINAL)
def test_settled_goes_dead_letters_and_all(outbox, status):
    event = outbox.event("succeeded", status, policy="settled")
    counts = outbox.prune()
    assert event not in outbox.events()
    assert counts["settled"]["events"] == 1


def test_no_deliveries_is_consumed_at_once(outbox):
    outbox.event(policy="succeeded")
    outbox.event(policy="settled", reason="import")
    young = outbox.event(reason="import")
    outbox.prune()
    assert outbox.events() == {young}
    assert outbox.pruned(now=outbox.now + timedelta(seconds=WINDOW + 1)) == {young}


@pytest.mark.parametrize("policy", ["succeeded", "settled"])
def test_an_event_is_nobodys_until_it_commits(outbox, policy):
    """Its deliveries are there from the first moment that it is seen."""
    writer = outbox.db.connect(autocommit=False).cursor()
    event = []
    for owed in (True, False):
        writer.execute(
            outbox.named(
                "INSERT INTO {event} (name, recorded_at, delete_when, suppressed_reason)"
                " VALUES ('e', %s, %s, '') RETURNING id"
            ),
            (outbox.now, policy),
        )
        event += writer.fetchone()
        assert outbox.pruned() == set()
        if owed:
            writer.execute(
                outbox.named(
                    "INSERT INTO {delivery} (event_id, receiver_key, status)"
                    " VALUES (%s, 'a', 'pending')"
                ),
                event[:1],
            )
        assert outbox.pruned() == set()
        writer.connection.commit()
    assert outbox.pruned() == {event[1]}
    assert outbox.events() == {event[0]}


@pytest.mark.parametrize("form", [{"window": 7 * DAY}, {}], ids=["own", "default"])
@pytest.mark.parametrize("status", TERMINAL)
def test_a_window_keeps_everything_and_then_takes_everything(outbox, status, form):
    window = form.get("window", WINDOW)
    young = outbox.event(status, "succeeded", age=window - 60, **form)
    old = outbox.event(status, "succeeded", age=window + 60, **form)
    assert outbox.pruned() == {old}
    assert outbox.events() == {young} and outbox.deliveries() == 2


def test_own_window_of_one_second(outbox):
    event = outbox.event("succeeded", age=1, window=1)
    assert outbox.pruned() == set()
    assert outbox.pruned(now=outbox.now + timedelta(microseconds=1)) == {event}


def test_own_window_shorter_and_longer_than_the_default(outbox):
    short = outbox.event("succeeded", age=8 * DAY, window=7 * DAY)
    long = outbox.event("succeeded", age=OLD, window=365 * DAY)
    assert outbox.pruned() == {short}
    assert outbox.events() == {long}


@pytest.mark.parametrize("days", [0, 1, 3650])
def test_policies_are_untouched_by_another_default(outbox, days):
    events = {outbox.event("succeeded", policy=policy) for policy in ("succeeded", "settled")}
    assert outbox.pruned(window=days * DAY) == events


def test_a_replay_keeps_the_event_until_it_has_ended_and_does_not_renew_it(outbox):
    forms = ({}, {"window": 60}, {"policy": "succeeded"}, {"policy": "settled"})
    events = {outbox.event("succeeded", age=OLD, **form) for form in forms}
    for status in OWED:
        outbox.sql("UPDATE {delivery} SET status = %s", status)
        assert outbox.pruned() == set()
    outbox.sql("UPDATE {delivery} SET status = 'succeeded'")
    assert outbox.pruned() == events


def test_own_window_is_untouched_by_another_default(outbox):
    own = outbox.event("succeeded", age=5 * DAY, window=7 * DAY)
    plain = outbox.event("succeeded", age=5 * DAY)
    kept = outbox.event("succeeded", "dead", age=5 * DAY, policy="succeeded")
    assert outbox.pruned(window=DAY) == {plain, kept}
    assert outbox.events() == {own}


def test_own_window_needs_everything_settled(outbox):
    event = outbox.event("succeeded", "pending", age=8 * DAY, window=7 * DAY)
    assert outbox.pruned() == set()
    outbox.sql("UPDATE {delivery} SET status = 'dead' WHERE status = 'pending'")
    assert outbox.pruned() == {event}


def test_unknown_policy_goes_at_the_default_window(outbox):
    young = outbox.event("succeeded", policy="someday", age=DAY)
    old = outbox.event("succeeded", policy="someday", age=OLD)
    counts = outbox.prune()
    assert outbox.events() == {young}
    assert counts["default_window"]["events"] == 1
    assert old not in outbox.events()


def test_policy_is_read_from_the_row(outbox):
    event = outbox.event("succeeded", policy="succeeded")
    other = outbox.event("succeeded")
    outbox.sql("UPDATE {event} SET delete_when = '' WHERE id = %s", event)
    outbox.sql("UPDATE {event} SET delete_when = 'settled' WHERE id = %s", other)
    assert outbox.pruned() == {other}


def test_equality_is_kept(outbox):
    exact = outbox.event("succeeded", age=WINDOW)
    own = outbox.event("succeeded", age=600, window=600)
    assert outbox.pruned() == set()
    later = outbox.now + timedelta(microseconds=1)
    assert outbox.pruned(now=later) == {exact, own}


def test_default_of_zero_is_as_soon_as_settled(outbox):
    event = outbox.event("succeeded", age=1)
    owed = outbox.event("succeeded", "pending", age=1)
    assert outbox.pruned(window=0) == {event}
    assert outbox.events() == {owed}


def test_longest_own_window(outbox):
    long = outbox.event("succeeded", age=67 * 365 * DAY, window=2147483647)
    past = outbox.event("succeeded", age=2147483647 + 1, window=2147483647)
    assert outbox.pruned() == {past}
    assert outbox.events() == {long}


def test_arms_are_drained_in_their_order(outbox):
    outbox.event("succeeded", policy="succeeded", age=OLD)
    outbox.event("succeeded", policy="settled", age=OLD)
    outbox.event("succeeded", window=60, age=OLD)
    outbox.event("succeeded", age=OLD)
    counts = outbox.prune()
    assert [counts[arm]["events"] for arm in ARMS] == [1, 1, 1, 1]


@pytest.mark.parametrize("zone", ["UTC", "Europe/Rome", "America/Sao_Paulo", "Pacific/Apia"])
def test_B26_windows_are_the_same_in_every_time_zone(outbox, zone):
    # A window across a change of clocks is still so many seconds.
    outbox.now = outbox.now.replace(year=2025, month=3, day=30, hour=12)
    outbox.sql("SELECT set_config('TimeZone', %s, false)", zone)
    outbox.sql("SET datestyle = 'German, DMY'")
    exact = outbox.event("succeeded", age=DAY, window=DAY)
    past = outbox.event("succeeded", age=DAY + 1, window=DAY)
    default = outbox.event("succeeded", age=WINDOW + 1)
    assert outbox.pruned() == {past, default}
    assert outbox.events() == {exact}
