from datetime import timedelta

import pytest

from service.db.session import Store
from service.dead_letters.records import DeadLetter
from service.errors import InvalidInput, NotFound
from tests.service.frozen_clock import FrozenClock
from tests.service.sample_rows import NOON


def letter(place: str, text: str = "{broken") -> DeadLetter:
    errors = ({"field": "status", "expected": "a status", "got": None},)
    return DeadLetter(text, "a" * 64, place, "status: a status", errors)


def test_a_dead_letter_round_trips(store: Store, clock: FrozenClock) -> None:
    with store.unit_of_work() as work:
        first, second = work.dead_letters.add([letter("jobs/0/17"), letter("POST line 3", "x\0\ud800" * 40_000)])
    with store.reading() as reading:
        found = reading.dead_letters.get(first)
        assert (found.place, found.text, found.sha256, found.at) == ("jobs/0/17", "{broken", "a" * 64, clock.at)
        assert (found.reason, found.resent_at) == ("status: a status", None)
        assert found.errors == ({"field": "status", "expected": "a status", "got": None},)
        assert reading.dead_letters.get(second).text == "x\0?" * 40_000


def test_the_same_bytes_from_the_same_place_are_stored_once(store: Store) -> None:
    with store.unit_of_work() as work:
        first = work.dead_letters.add([letter("jobs/0/17"), letter("jobs/0/17"), letter("jobs/0/18")])
        again = work.dead_letters.add([letter("jobs/0/18")])
    assert first[0] == first[1] != first[2] == again[0]
    with store.reading() as reading:
        assert len(reading.dead_letters.page().items) == 2


def test_pages_are_sorted_newest_first(store: Store) -> None:
    with store.unit_of_work() as work:
        ids = work.dead_letters.add([letter(f"jobs/0/{n}") for n in range(5)])
    seen, cursor = [], None
    with store.reading() as reading:
        while True:
            page = reading.dead_letters.page(limit=2, cursor=cursor)
            seen += [found.id for found in page.items]
            cursor = page.next_cursor
            if cursor is None:
                break
        with pytest.raises(InvalidInput):
            reading.dead_letters.page(cursor="nonsense")
        with pytest.raises(InvalidInput):
            reading.dead_letters.page(limit=501)
    assert seen == ids[::-1]


def test_a_resent_letter_has_its_time_and_is_not_open(store: Store, clock: FrozenClock) -> None:
    with store.unit_of_work() as work:
        [number] = work.dead_letters.add([letter("jobs/0/17")])
    since = NOON - timedelta(days=1)
    with store.reading() as reading:
        assert (reading.statistics.health(since).dead_letters_open, reading.statistics.health(since).dead_letters) == (
            1,
            1,
        )
    with store.unit_of_work() as work:
        work.dead_letters.mark_resent(number)
        with pytest.raises(NotFound):
            work.dead_letters.mark_resent(number + 1)
        with pytest.raises(NotFound):
            work.dead_letters.get(2**64)
    with store.reading() as reading:
        assert reading.dead_letters.get(number).resent_at == clock.at
        assert reading.statistics.health(since).dead_letters_open == 0
