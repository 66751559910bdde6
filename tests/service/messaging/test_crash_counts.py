"""A record that kills each process that handles it becomes a dead letter; other deaths give up nothing."""

from collections.abc import Callable

import pytest

from service.contracts.event import JobCompletion
from service.errors import Unavailable
from service.messaging.crash_counts import ALONE, BATCHES
from service.messaging.record import TopicPartition
from service.messaging.source import Committed
from tests.service.messaging.fakes import event
from tests.service.messaging.memory_source import MemorySource
from tests.service.messaging.test_consumer import Scene

PLACE = TopicPartition("jobs", 0)


class Killed(BaseException):
    """The end of a process by SIGKILL, as far as its program can tell: nothing more is done."""


class Workers(Scene):
    """Successive processes of which each is killed at a batch with an event for which `deadly` holds."""

    def __init__(self, deadly: Callable[[JobCompletion], bool]) -> None:
        super().__init__()
        self.deaths = 0
        self._deadly = deadly
        self.database.poison = self._kill

    def _kill(self, one: JobCompletion) -> bool:
        if self._deadly(one):
            raise Killed
        return False

    def one(self) -> bool:
        """Run one process; returns whether it was killed."""
        self.source = MemorySource(self.broker, f"process {self.deaths}", ["jobs"])
        try:
            self.run()
        except Killed:
            self.deaths += 1
            return True
        return False

    def all(self, most: int = 20) -> None:
        while self.one():
            assert self.deaths < most, "the same record is read again for ever"


@pytest.mark.parametrize("at", [0, 37, 299])
def test_the_record_that_kills_every_process_becomes_a_dead_letter_and_all_others_are_stored(at: int) -> None:
    workers = Workers(lambda one: one.job_id == f"j{at}")
    for number in range(300):
        workers.put(event(f"j{number}"))
    workers.all()
    assert workers.deaths == BATCHES + ALONE
    assert workers.database.jobs() == {f"j{number}" for number in range(300)} - {f"j{at}"}
    (letter,) = workers.database.letters.values()
    assert (letter.place, letter.reason) == (
        f"jobs/0/{at}", "could not be handled: 4 processes were killed while they handled it alone",
    )  # fmt: skip
    assert workers.topic.places() == {f"jobs/0/{at}"}
    assert workers.committed() == 300


def test_two_such_records_of_two_partitions_are_both_found() -> None:
    workers = Workers(lambda one: one.job_id in {"a3", "b5"})
    for number in range(20):
        workers.put(event(f"a{number}"), partition=0)
        workers.put(event(f"b{number}"), partition=1)
    workers.all()
    assert workers.database.places() == {"jobs/0/3", "jobs/1/5"}
    assert (workers.committed(0), workers.committed(1)) == (20, 20)


def test_a_process_that_is_killed_for_other_reasons_costs_no_record() -> None:
    left = [0]

    def now_and_then(one: JobCompletion) -> bool:
        del one
        left[0] += 1
        return left[0] % 11 == 0

    workers = Workers(now_and_then)
    for number in range(100):
        workers.put(event(f"j{number}"), partition=number % 2)
    workers.all(most=60)
    assert workers.deaths > BATCHES
    assert workers.database.jobs() == {f"j{number}" for number in range(100)}
    assert not workers.database.letters


def test_after_a_death_the_records_are_handled_one_by_one_and_then_together_again() -> None:
    deaths = [Killed()] * BATCHES
    workers = Workers(lambda _one: False)
    workers.database.before = lambda: _raise_next(deaths)
    for number in range(600):
        workers.put(event(f"j{number}"))
    workers.all()
    assert workers.deaths == BATCHES
    assert workers.database.batches == [1] * 500 + [100]


def test_a_wait_for_the_database_and_an_orderly_end_count_for_nothing() -> None:
    workers = Workers(lambda _one: False)
    workers.put(event("a"))
    for _ in range(ALONE + 1):
        workers.database.before = lambda: _raise_next([Unavailable("the database does not answer")])
        workers.source = MemorySource(workers.broker, "a", ["jobs"])
        asked = [0]
        workers.run(until=lambda asked=asked: _count(asked) > 8)  # type: ignore[misc] # bound at definition
    assert workers.broker.group.committed[PLACE] == Committed(0, "")
    workers.database.before = lambda: None
    workers.all()
    assert workers.database.jobs() == {"a"}
    assert not workers.database.letters


def test_a_foreign_note_is_no_count() -> None:
    workers = Workers(lambda _one: False)
    workers.put(event("a"))
    workers.broker.group.committed[PLACE] = Committed(0, "moved here by kafka-consumer-groups, batches=9 alone=9")
    workers.all()
    assert workers.database.jobs() == {"a"}


def _raise_next(errors: list[BaseException] | list[Killed] | list[Unavailable]) -> None:
    if errors:
        raise errors.pop()


def _count(asked: list[int]) -> int:
    asked[0] += 1
    return asked[0]
