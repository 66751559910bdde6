import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.groups.records import GroupFacts, GroupRow
from service.groups.states import assess, chance_of, levels

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
ROW = GroupRow(
    id=1,
    fingerprint="v1:a",
    state="ongoing",
    state_since=NOW,
    title="a line",
    side="user",
    cause="USER.1",
    abstained=False,
    first_id=1,
    last_id=9,
    first_at=NOW - timedelta(days=20),
    last_at=NOW - timedelta(hours=1),
    failures=9,
    users=2,
    gpu_hours_lost=1.0,
    recent=None,
    expected=None,
    chance=None,
    assignee=None,
    ticket=None,
    resolved_at=None,
    muted_until=None,
    muted_failures=None,
    muted_users=None,
    merged_into=None,
    labelled_at=None,
)


def state(recent: int = 0, past: int = 10, past_h: float = 480.0, **changes: Any) -> str:
    return assess(GroupFacts(replace(ROW, **changes), recent, past, past_h), NOW, levels()).state


def test_a_group_is_new_for_three_days() -> None:
    assert state(first_at=NOW - timedelta(hours=71), past_h=60.0) == "new"
    assert state(first_at=NOW - timedelta(hours=73)) == "ongoing"


def test_a_rate_credibly_above_its_own_past_escalates() -> None:
    assert state(recent=5) == "escalating"
    assert state(recent=4) == "ongoing", "few failures are no news"
    assert state(recent=5, past=400) == "ongoing", "as many as ever"
    assert state(recent=40, past=400) == "escalating"
    assert state(recent=20, past=3, past_h=10.0, first_at=NOW - timedelta(hours=16)) == "new", "too short a past"


def test_a_group_escalates_until_its_rate_is_normal() -> None:
    assert state(recent=3, state="escalating") == "escalating"
    assert state(recent=0, state="escalating") == "ongoing"


def test_a_resolved_group_stays_resolved_until_it_fails_again() -> None:
    assert state(state="resolved", resolved_at=NOW) == "resolved"
    assert state(state="resolved", resolved_at=NOW - timedelta(hours=2)) == "regressed"
    assert state(state="regressed", resolved_at=NOW - timedelta(hours=2)) == "regressed"


@pytest.mark.parametrize(
    ("mute", "after"),
    [
        ({"muted_until": NOW + timedelta(hours=1)}, "muted"),
        ({"muted_until": NOW}, "ongoing"),
        ({"muted_failures": 10}, "muted"),
        ({"muted_failures": 9}, "ongoing"),
        ({"muted_users": 3}, "muted"),
        ({"muted_users": 2}, "ongoing"),
        ({"muted_users": 3, "muted_until": NOW}, "ongoing"),
        ({}, "muted"),
    ],
)
def test_a_mute_ends_with_its_condition(mute: dict[str, Any], after: str) -> None:
    assert state(state="muted", **mute) == after


def test_the_chance_is_that_of_a_negative_binomial() -> None:
    """Compared with the closed form of the sum, for 2 failures in 10 hours and 3 in the next 5."""
    shape, quiet = 2.5, 10 / 15
    below = sum(
        math.gamma(shape + k) / (math.gamma(shape) * math.factorial(k)) * quiet**shape * (1 - quiet) ** k
        for k in range(3)
    )
    assert chance_of(3, 5, 2, 10) == pytest.approx(1 - below)


@given(st.integers(0, 500), st.integers(0, 5_000), st.floats(24, 672))
def test_the_probability_is_monotonic_in_recent_and_past_failures(recent: int, past: int, hours: float) -> None:
    here = chance_of(recent, 6, past, hours)
    assert 0 <= here <= 1
    assert chance_of(recent + 1, 6, past, hours) <= here + 1e-9
    assert chance_of(recent, 6, past + 1, hours) >= here - 1e-9


@given(st.integers(0, 100), st.integers(0, 1000), st.floats(0, 672))
def test_the_review_time_is_in_the_future(recent: int, past: int, hours: float) -> None:
    assert assess(GroupFacts(ROW, recent, past, hours), NOW, levels()).review_at > NOW
