"""The list of groups: filters that match many groups are evaluated in a window, and the cursor continues."""

from datetime import timedelta
from typing import Any

import pytest

from service.db.session import Store
from service.groups.records import GroupFilter
from service.groups.repository import listing
from service.groups.tables import groups
from tests.service.databases import engine_of
from tests.service.sample_rows import NOON, job, put


@pytest.mark.parametrize(("few", "window"), [(500, 5_000), (0, 5_000), (0, 3)])
def test_every_matching_group_is_found(store: Store, monkeypatch: pytest.MonkeyPatch, few: int, window: int) -> None:
    monkeypatch.setattr(listing, "FEW", few)
    monkeypatch.setattr(listing, "WINDOW", window)
    for number in range(10):
        user = "bo" if number % 4 == 0 else "ana"
        at = NOON - timedelta(hours=number)
        put(store, [job(f"e{number}", user=user, ended_at=at)], fingerprint=f"v1:{number}", side="user")
    with store.unit_of_work() as work:
        while work.groups.fold() is not None:
            pass
    for wanted, prints in (
        (GroupFilter(user="bo"), ["v1:0", "v1:4", "v1:8"]),
        (GroupFilter(user="bo", team="vision", side="user"), ["v1:0", "v1:4", "v1:8"]),
        (GroupFilter(user="nobody"), []),
        (GroupFilter(side="hardware"), []),
    ):
        found, cursor = [], None
        for _ in range(20):
            with store.reading() as reading:
                page = reading.groups.page(wanted, limit=2, cursor=cursor)
            found += [row.fingerprint for row in page.items]
            cursor = page.next_cursor
            if cursor is None:
                break
        assert (found, cursor) == (prints, None)


def test_groups_of_a_period_are_those_with_a_failure_in_it(store: Store) -> None:
    """Group 1 failed before and after the period, group 2 in it, group 3 only before it, group 4 only after it."""
    for fingerprint, hours in (("v1:1", (50, 1)), ("v1:2", (20,)), ("v1:3", (60,)), ("v1:4", (2,))):
        for number in hours:
            put(
                store,
                [job(f"{fingerprint}-{number}", ended_at=NOON - timedelta(hours=number))],
                fingerprint=fingerprint,
            )
    with store.unit_of_work() as work:
        while work.groups.fold() is not None:
            pass

    def found(since: int | None, until: int | None, **more: Any) -> set[str]:
        begin, end = (None if ago is None else NOON - timedelta(hours=ago) for ago in (since, until))
        with store.reading() as reading:
            return {row.fingerprint for row in reading.groups.page(GroupFilter(since=begin, until=end), **more).items}

    for sort in ("-last_at", "-gpu_hours_lost"):
        assert found(30, 10, sort=sort) == {"v1:2"}
        assert found(30, None, sort=sort) == {"v1:1", "v1:2", "v1:4"}
        assert found(None, 30, sort=sort) == {"v1:1", "v1:3"}
        assert found(61, 0, sort=sort) == {"v1:1", "v1:2", "v1:3", "v1:4"}


def test_the_most_expensive_groups_of_several_states_come_in_one_list(store: Store) -> None:
    for number in range(8):
        put(store, [job(f"e{number}", gpu_hours_lost=float(number))], fingerprint=f"v1:{number}")
    with store.unit_of_work() as work:
        work.groups.fold()
    states = {"escalating": (1, 5, 3), "new": (0, 7), "muted": (2, 4, 6)}
    with engine_of(store).begin() as connection:
        for state, numbers in states.items():
            prints = [f"v1:{number}" for number in numbers]
            connection.execute(groups.update().where(groups.c.fingerprint.in_(prints)).values(state=state))
    with store.reading() as reading:
        found = reading.groups.most_expensive(GroupFilter(cluster="orion"), {"new": 5, "escalating": 2})
        nowhere = reading.groups.most_expensive(GroupFilter(cluster="vega"), {"new": 5, "escalating": 2})
    assert [(row.state, row.gpu_hours_lost) for row in found] == [
        ("new", 7.0),
        ("new", 0.0),
        ("escalating", 5.0),
        ("escalating", 3.0),
    ]
    assert nowhere == []
