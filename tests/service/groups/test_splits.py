"""Splitting failures off a group, on both databases."""

from typing import Any

import pytest

from service.db.session import Store
from service.errors import Conflict, Unavailable
from service.groups.count_updater import GroupCountUpdater
from service.groups.records import GroupFilter
from service.groups.repository.groups import GroupRepository
from service.groups.service import GroupService
from tests.service.frozen_clock import FrozenClock
from tests.service.sample_rows import job, put


def sizes(store: Store, clock: FrozenClock) -> dict[int, int]:
    """The number of failures of each group, by its id."""
    GroupCountUpdater(store, clock)()
    with store.reading() as reading:
        return {row.id: row.failures for row in reading.groups.page(GroupFilter()).items}


def test_a_split_that_was_interrupted_is_completed_when_it_is_asked_for_again(
    store: Store, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store, [*(job(f"e{n}", user="ana") for n in range(3)), job("other", user="bo")])
    [group] = sizes(store, clock)
    service = GroupService(store, clock)

    def stop(*_: Any) -> int:
        raise Unavailable("the database does not answer")

    with monkeypatch.context() as patch:
        patch.setattr(GroupRepository, "regroup", stop)
        with pytest.raises(Unavailable):
            service.split(group, "user", "ana", "eve")
    assert sizes(store, clock) == {group: 4}
    service.split(group, "user", "ana", "eve")
    found = sizes(store, clock)
    assert found.pop(group) == 1
    assert list(found.values()) == [3]
    with pytest.raises(Conflict):
        service.split(group, "user", "ana", "eve")
