"""Groups while several processes count failures and people act on them."""

from collections.abc import Callable
from datetime import timedelta
from threading import Thread
from typing import Any

import pytest

from service.db.session import Store
from service.errors import Conflict
from service.groups.count_updater import GroupCountUpdater
from service.groups.records import GroupFilter, GroupRow
from service.groups.repository import counts
from service.groups.repository.groups import GroupReader
from service.groups.service import GroupService
from tests.service.frozen_clock import FrozenClock
from tests.service.sample_rows import NOON, job, put

WAIT_S = 0.5  # what the other process is given before this one goes on


class Meanwhile:
    """Lets another process act once, right after a function of this one has returned."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, where: Any, name: str, action: Callable[[], object]) -> None:
        self._action = action
        self._thread: Thread | None = None
        self.refused = False
        original = getattr(where, name)

        def called(*args: Any, **more: Any) -> Any:
            found = original(*args, **more)
            if self._thread is None:
                self._thread = Thread(target=self._act)
                self._thread.start()
                self._thread.join(WAIT_S)
            return found

        monkeypatch.setattr(where, name, called)

    def _act(self) -> None:
        try:
            self._action()
        except Conflict:
            self.refused = True

    def ended(self) -> None:
        assert self._thread is not None
        self._thread.join(30)
        assert not self._thread.is_alive()


def shown(store: Store) -> dict[str, GroupRow]:
    with store.reading() as reading:
        return {row.fingerprint: row for row in reading.groups.page(GroupFilter()).items}


@pytest.mark.parametrize("action", ["resolved", "muted"])
def test_what_a_person_does_while_the_state_of_a_group_is_computed_stays(
    open_store: Callable[[], Store], clock: FrozenClock, monkeypatch: pytest.MonkeyPatch, action: str
) -> None:
    store, other = open_store(), GroupService(open_store(), clock)
    put(store, [job("e1")], fingerprint="v1:a")
    update = GroupCountUpdater(store, clock)
    update()
    group = shown(store)["v1:a"].id
    clock.at += timedelta(days=4)
    act: Callable[[], object] = (
        (lambda: other.resolve([group], "ana"))
        if action == "resolved"
        else (lambda: other.mute([group], "ana", until=clock.now() + timedelta(days=9)))
    )
    person = Meanwhile(monkeypatch, GroupReader, "facts", act)
    update()
    person.ended()
    update()
    assert shown(store)["v1:a"].state == action


def test_two_groups_that_are_merged_into_each_other_at_the_same_time_do_not_both_disappear(
    open_store: Callable[[], Store], clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, other = open_store(), GroupService(open_store(), clock)
    for name in ("a", "b"):
        put(store, [job(name)], fingerprint=f"v1:{name}")
    GroupCountUpdater(store, clock)()
    a, b = (shown(store)[f"v1:{name}"].id for name in ("a", "b"))
    person = Meanwhile(monkeypatch, GroupReader, "row", lambda: other.merge(b, [a], "bea"))
    GroupService(store, clock).merge(a, [b], "ana")
    person.ended()
    assert person.refused
    assert [(row.id, row.failures) for row in shown(store).values()] == [(a, 2)]


def test_failures_that_are_counted_while_their_group_is_merged_count_in_the_other_one(
    open_store: Callable[[], Store], clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, other = open_store(), GroupService(open_store(), clock)
    for name in ("a", "b"):
        put(store, [job(name, ended_at=NOON - timedelta(hours=1))], fingerprint=f"v1:{name}")
    update = GroupCountUpdater(store, clock)
    update()
    a, b = (shown(store)[f"v1:{name}"].id for name in ("a", "b"))
    put(store, [job("a2", ended_at=NOON)], fingerprint="v1:a")
    person = Meanwhile(monkeypatch, counts, "_groups_of", lambda: other.merge(b, [a], "bea"))
    update()
    person.ended()
    [row] = shown(store).values()
    assert (row.id, row.failures, row.last_at) == (b, 3, NOON)
