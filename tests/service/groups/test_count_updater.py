"""The states of groups while other processes and people act at the same time, on both databases."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from service.db.session import Store
from service.groups import count_updater, states
from service.groups.count_updater import GroupCountUpdater
from service.groups.records import GroupDetail, GroupFilter
from service.groups.service import GroupService
from service.times import MAX_TIME, MIN_TIME
from tests.service.frozen_clock import FrozenClock
from tests.service.sample_rows import job, put

Meanwhile = Callable[[Callable[[], object]], None]


def group(store: Store) -> GroupDetail:
    with store.reading() as reading:
        [row] = reading.groups.page(GroupFilter()).items
        return reading.groups.get(row.id)


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Iterator[Meanwhile]:
    """Does something in another thread after the next group was read and before its state is stored."""
    threads: list[threading.Thread] = []

    def next_time(action: Callable[[], object]) -> None:
        thread = threading.Thread(target=action)

        def assess(*given: Any) -> Any:
            if thread not in threads:
                threads.append(thread)
                thread.start()
                thread.join(1)  # it may have to wait for this transaction
            return states.assess(*given)

        monkeypatch.setattr(count_updater, "assess", assess)

    yield next_time
    for thread in threads:
        thread.join(30)


def test_a_group_that_a_person_resolves_while_its_state_is_computed_stays_resolved(
    open_store: Callable[[], Store], clock: FrozenClock, meanwhile: Meanwhile
) -> None:
    store, other = open_store(), open_store()
    put(store, [job("e1")])
    update = GroupCountUpdater(store, clock)
    update()
    number = group(store).row.id
    clock.sleep(timedelta(days=4).total_seconds())
    done = threading.Event()

    def resolve() -> None:
        GroupService(other, clock).resolve([number], "ana")
        done.set()

    meanwhile(resolve)
    assert update() == 1
    assert done.wait(30)
    update()
    assert group(store).row.state == "resolved"


def test_two_processes_note_the_end_of_a_mute_once(
    open_store: Callable[[], Store], clock: FrozenClock, meanwhile: Meanwhile
) -> None:
    store, other = open_store(), open_store()
    put(store, [job("e1")])
    update = GroupCountUpdater(store, clock)
    update()
    GroupService(store, clock).mute([group(store).row.id], "ana", until=clock.at + timedelta(hours=1))
    clock.sleep(2 * 3600)
    done = threading.Event()

    def update_too() -> None:
        GroupCountUpdater(other, clock)()
        done.set()

    meanwhile(update_too)
    update()
    assert done.wait(30)
    assert [note.text for note in group(store).notes if note.kind == "state"] == ["no longer muted: new"]


def test_an_end_by_a_clock_ahead_counts_when_it_arrived(store: Store, clock: FrozenClock) -> None:
    arrived = clock.now()
    put(store, [replace(job("e1", ended_at=arrived + timedelta(days=400)), received_at=arrived)])
    update = GroupCountUpdater(store, clock)
    update()
    found = group(store)
    assert (found.row.first_at, found.row.last_at) == (arrived, arrived)
    assert [hour.failures for hour in found.hours] == [1]
    GroupService(store, clock).resolve([found.row.id], "ana")
    clock.sleep(timedelta(days=1).total_seconds())
    update()
    assert group(store).row.state == "resolved"


@pytest.mark.parametrize("end", [MIN_TIME, MAX_TIME])
def test_an_end_at_the_border_of_the_calendar_stops_no_group(store: Store, clock: FrozenClock, end: datetime) -> None:
    put(store, [job("e1", ended_at=end)], fingerprint="1:odd")
    put(store, [job("e2")])
    GroupCountUpdater(store, clock)()
    with store.reading() as reading:
        assert [row.failures for row in reading.groups.page(GroupFilter()).items] == [1, 1]
