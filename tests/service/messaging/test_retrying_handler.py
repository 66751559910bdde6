from collections.abc import Sequence

import pytest

from service.contracts.event import JobCompletion
from service.dead_letters.records import DeadLetter
from service.errors import ConfigurationError, Unavailable
from service.messaging.batch_result import BatchOutcome
from service.messaging.batching import BatchItem
from service.messaging.retrying_handler import RetryingHandler
from tests.service.messaging.fakes import Database, event, parse


def item(name: str) -> BatchItem:
    found = parse(event(name), cluster="orion")
    assert isinstance(found, JobCompletion)
    return BatchItem(found, event(name), f"jobs/0/{name}")


def never(error: Unavailable, times: int) -> None:
    raise AssertionError((error, times))


def test_waiting_knows_the_number_of_failures_and_the_same_batch_is_tried_again() -> None:
    database, asked = Database(), []
    database.down = 3
    handler = RetryingHandler(database, lambda _error, times: asked.append(times))
    assert handler.store_items([item("a"), item("b")]) == []
    assert asked == [1, 2, 3]
    assert database.batches == [2]


def test_what_is_no_longer_wanted_is_left_out_of_the_next_try() -> None:
    database, wanted = Database(), {"jobs/0/a", "jobs/0/b"}
    database.down = 1
    handler = RetryingHandler(
        database, lambda _error, _times: wanted.discard("jobs/0/a"), lambda one: one.place in wanted
    )
    handler.store_items([item("a"), item("b")])
    assert database.jobs() == {"b"}


def test_looking_for_one_bad_event_among_many_takes_few_tries() -> None:
    database, tries = Database(), []
    database.poison = lambda stored: stored.job_id == "j300"
    database.before = lambda: tries.append(1)
    [letter] = RetryingHandler(database, never).store_items([item(f"j{number}") for number in range(512)])
    assert letter.place == "jobs/0/j300"
    assert len(database.jobs()) == 511
    assert len(tries) < 25


def test_a_letter_whose_text_can_not_be_stored_is_stored_without_it() -> None:
    class Picky(Database):
        def __call__(self, events: Sequence[JobCompletion], dead: Sequence[DeadLetter] = ()) -> BatchOutcome:
            if any(letter.text for letter in dead):
                raise ValueError("no text like that")
            return super().__call__(events, dead)

    database = Picky()
    database.poison = lambda _event: True
    [became] = RetryingHandler(database, never).store_items([item("a")])
    assert isinstance(became.content, DeadLetter)
    assert became.content.text == ""
    assert database.places() == {"jobs/0/a"}


def test_where_not_even_that_can_be_stored_it_ends_with_the_error() -> None:
    def broken(events: Sequence[JobCompletion], dead: Sequence[DeadLetter] = ()) -> BatchOutcome:
        raise ZeroDivisionError(len(events) + len(dead))

    with pytest.raises(ZeroDivisionError):
        RetryingHandler(broken, never).store_items([item("a"), item("b")])


def test_a_wrong_setting_is_raised_and_makes_no_dead_letters() -> None:
    def unset(events: Sequence[JobCompletion], dead: Sequence[DeadLetter] = ()) -> BatchOutcome:
        raise ConfigurationError(f"no schema for {len(events) + len(dead)}")

    with pytest.raises(ConfigurationError, match="no schema for 2"):
        RetryingHandler(unset, never).store_items([item("a"), item("b")])
