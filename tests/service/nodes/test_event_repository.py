"""Node events are stored once, and found by node and time."""

from dataclasses import replace
from datetime import timedelta

import pytest

from service.db.session import Store
from service.errors import InvalidInput
from service.nodes.records import NewNodeEvent, Window
from tests.service.sample_rows import NOON

HOUR = timedelta(hours=1)


def node_event(number: int, **changes: object) -> NewNodeEvent:
    plain = NewNodeEvent(
        key=number.to_bytes(16, "big"),
        cluster="orion",
        node="gpu1",
        at=NOON + timedelta(minutes=number),
        kind="gpu_lost",
        text=f"event {number}",
        severity="fatal",
    )
    return replace(plain, **changes)  # type: ignore[arg-type] # written by hand


def test_an_event_is_stored_once(store: Store) -> None:
    with store.unit_of_work() as work:
        assert work.node_events.add([node_event(1), node_event(2), node_event(1)]) == [True, True, False]
    with store.unit_of_work() as work:
        assert work.node_events.add([node_event(2), node_event(3)]) == [False, True]
        assert work.node_events.add([]) == []
    with store.reading() as reading:
        assert [event.text for event in reading.node_events.page("orion", "gpu1").items] == [
            "event 3",
            "event 2",
            "event 1",
        ]


def test_events_are_found_by_node_and_time_and_windows_as_long_as_they_last(store: Store) -> None:
    with store.unit_of_work() as work:
        work.node_events.add(
            [
                node_event(1),
                node_event(2, node="gpu2"),
                node_event(3, cluster="lyra"),
                node_event(4, at=NOON - HOUR),
                node_event(5, kind="maintenance", at=NOON - 30 * HOUR, until=NOON + HOUR),
                node_event(6, kind="maintenance", at=NOON - 30 * HOUR, until=NOON - 3 * HOUR),
            ]
        )
    window = Window("orion", "gpu1", NOON - timedelta(minutes=5), NOON + timedelta(minutes=5))
    with store.reading() as reading:
        assert reading.node_events.any_since(NOON)
        assert not reading.node_events.any_since(NOON + 2 * HOUR)
        found = reading.node_events.within([window, replace(window, name="nobody")])
        assert [event.text for event in found] == ["event 5", "event 1"]
        assert reading.node_events.within([]) == []
        assert [event.text for event in reading.node_events.windows("orion", "gpu1", since=NOON)] == ["event 5"]


def test_a_page_continues_where_the_last_one_ended(store: Store) -> None:
    with store.unit_of_work() as work:
        work.node_events.add([node_event(number, at=NOON) for number in range(7)])
    texts: list[str] = []
    cursor = None
    with store.reading() as reading:
        while True:
            page = reading.node_events.page("orion", "gpu1", limit=3, cursor=cursor)
            texts += [event.text for event in page.items]
            cursor = page.next_cursor
            if cursor is None:
                break
        assert sorted(texts) == [f"event {number}" for number in range(7)]
        for wrong in ("", "abc", "W10"):
            with pytest.raises(InvalidInput, match="cursor"):
                reading.node_events.page("orion", "gpu1", cursor=wrong)


def test_old_events_are_removed(store: Store) -> None:
    with store.unit_of_work() as work:
        work.node_events.add([node_event(1, at=NOON - 100 * HOUR), node_event(2)])
        assert work.node_events.remove(NOON - HOUR) == 1
        assert work.node_events.remove(NOON - HOUR) == 0
    with store.reading() as reading:
        assert [event.text for event in reading.node_events.page("orion", "gpu1").items] == ["event 2"]


def test_text_that_no_database_stores_is_repaired_and_long_text_cut(store: Store) -> None:
    with store.unit_of_work() as work:
        work.node_events.add([node_event(1, text="a\0b\ud800" + "x" * 10_000, source="s" * 500)])
    with store.reading() as reading:
        [event] = reading.node_events.page("orion", "gpu1").items
    assert event.text.startswith("a�b")
    assert len(event.text) == 2_000
    assert len(event.source or "") == 60


def test_a_window_that_began_long_ago_counts_and_is_kept_until_it_is_over(store: Store) -> None:
    days = timedelta(days=1)
    with store.unit_of_work() as work:
        work.node_events.add([node_event(1, at=NOON - 100 * days, until=NOON + days, kind="maintenance")])
    with store.reading() as reading:
        assert reading.node_events.any_since(NOON - 30 * days)
        assert not reading.node_events.any_since(NOON + 2 * days)
    with store.unit_of_work() as work:
        assert work.node_events.remove(NOON - 90 * days) == 0
        assert work.node_events.remove(NOON + 2 * days) == 1
