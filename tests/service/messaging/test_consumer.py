"""The loop: nothing lost, nothing twice, offsets last, whatever happens on the way."""

import logging
import math
from collections.abc import Callable, Mapping, Sequence

import pytest

from service.errors import ConfigurationError, Unavailable
from service.messaging.consumer import DEFAULT_LIMITS, Consumer, ConsumerLimits
from service.messaging.dead_letters import Rejected, TooManyDeadLetters
from service.messaging.record import TopicPartition
from service.messaging.source import Committed
from service.telemetry import Telemetry
from tests.service.messaging.fakes import Clock, Database, DeadLetterTopic, StopWhen, event, parse
from tests.service.messaging.memory_source import MemoryBroker, MemorySource


class Scene:
    """A topic of two partitions, a consumer of it, and everything around it."""

    def __init__(self, limits: ConsumerLimits = DEFAULT_LIMITS) -> None:
        self.clock = Clock()
        self.broker = MemoryBroker({"jobs": 2}, {"jobs": "orion"})
        self.database = Database()
        self.topic = DeadLetterTopic()
        self.telemetry = Telemetry()
        self.limits = limits
        self.source = MemorySource(self.broker, "a", ["jobs"])

    def put(self, value: bytes | None, partition: int = 0) -> int:
        return self.broker.put(TopicPartition("jobs", partition), value)

    def committed(self, partition: int = 0) -> int | None:
        return self.broker.committed(TopicPartition("jobs", partition))

    def caught_up(self) -> bool:
        return all((self.broker.committed(place) or 0) == len(log) for place, log in self.broker.logs.items())

    def run(self, until: Callable[[], bool] | None = None) -> None:
        Consumer(
            self.source,
            parse,
            self.database,
            self.topic,
            clock=self.clock,
            telemetry=self.telemetry,
            limits=self.limits,
        ).run(StopWhen(self.clock, until or self.caught_up))


def test_stores_each_event_and_commits_behind_it() -> None:
    scene = Scene()
    for number in range(20):
        scene.put(event(f"j{number}"), partition=number % 2)
    scene.run()
    assert scene.database.jobs() == {f"j{number}" for number in range(20)}
    assert (scene.committed(0), scene.committed(1)) == (10, 10)
    assert {stored.cluster for stored in scene.database.events.values()} == {"orion"}


def test_what_one_poll_brought_is_one_batch() -> None:
    scene = Scene()
    for number in range(300):
        scene.put(event(f"j{number}"), partition=number % 2)
    scene.run()
    assert scene.database.batches == [300]


def test_a_batch_holds_no_more_events_and_bytes_than_allowed() -> None:
    scene = Scene(ConsumerLimits(events=50, bytes=2_000))
    for number in range(120):
        scene.put(event(f"j{number}", message="x" * (number % 7) * 30))
    scene.put(event("large", message="y" * 5_000))
    scene.run()
    assert scene.database.jobs() == {f"j{number}" for number in range(120)} | {"large"}
    assert max(scene.database.batches) <= 50
    assert len(scene.database.batches) > 10


def test_unreadable_records_become_dead_letters_without_other_effect() -> None:
    scene = Scene()
    for value in (event("a"), b"{", b"\x00\xff", event("b"), b"[]", event("c", status="over"), event("d")):
        scene.put(value)
    scene.run()
    assert scene.database.jobs() == {"a", "b", "d"}
    assert scene.database.places() == scene.topic.places() == {f"jobs/0/{n}" for n in (1, 2, 4, 5)}
    refused = next(letter for letter in scene.database.letters.values() if letter.place == "jobs/0/5")
    assert refused.errors[0]["field"] == "status"
    assert scene.committed() == 7


def test_a_reader_that_fails_on_a_record_makes_it_a_dead_letter() -> None:
    scene = Scene()
    scene.put(event("a"))
    scene.put(b'{"crash": true}')
    scene.put(event("b"))
    scene.run()
    assert scene.database.jobs() == {"a", "b"}
    assert scene.topic.places() == {"jobs/0/1"}


def test_deletion_markers_and_start_records_are_counted_and_passed_over() -> None:
    scene = Scene()
    for value in (None, b'{"skip": true}', event("a"), None):
        scene.put(value)
    scene.run()
    assert scene.database.jobs() == {"a"}
    assert not scene.topic.sent
    assert scene.telemetry.registry.get_sample_value("faultline_events_total", {"outcome": "skipped"}) == 3


def test_waits_for_a_database_that_is_down_and_stays_a_member() -> None:
    scene = Scene()
    for number in range(5):
        scene.put(event(f"j{number}"))
    scene.database.down = 6
    ups = []
    scene.database.before = lambda: ups.append(scene.telemetry.registry.get_sample_value("faultline_database_up"))
    scene.run()
    assert scene.database.batches == [5]
    assert scene.committed() == 5
    assert scene.broker.group.generation <= 2  # joined and left, and nothing between
    assert 4 < scene.clock.seconds < 120
    assert 0.0 in ups
    assert scene.telemetry.registry.get_sample_value("faultline_database_up") == 1.0


def test_a_process_that_has_not_consumed_reports_no_database_as_down() -> None:
    """`min(faultline_database_up) == 0` alerts; web processes have the metric too."""
    up = Telemetry().registry.get_sample_value("faultline_database_up")
    assert up is not None
    assert math.isnan(up)


def test_nothing_is_committed_while_the_database_is_down_and_the_end_can_be_asked_for() -> None:
    scene = Scene()
    scene.put(event("a"))
    scene.database.down = 10_000
    scene.run(until=lambda: scene.clock.seconds > 60)
    assert not scene.committed()
    again = Scene()
    again.broker = scene.broker
    again.source = MemorySource(scene.broker, "b", ["jobs"])
    again.run()
    assert again.database.jobs() == {"a"}


def test_partitions_taken_away_while_the_database_is_down_are_left_to_the_other_member() -> None:
    scene = Scene()
    for number in range(10):
        scene.put(event(f"j{number}"), partition=number % 2)
    other = MemorySource(scene.broker, "b", ["jobs"])
    scene.database.down = 3

    def takes_half() -> None:
        if scene.database.down == 2:
            other.poll(1, 0.0)

    scene.database.before = takes_half
    mine = next(iter(_partitions_after_joining()))
    scene.run(until=lambda: bool(scene.database.batches))
    theirs = 1 - mine
    assert scene.database.jobs() == {f"j{number}" for number in range(10) if number % 2 == mine}
    assert scene.committed(mine) == 5
    assert not scene.committed(theirs)
    assert [one.offset for one in other.poll(500, 0.0) if one.partition == theirs] == list(range(5))


def _partitions_after_joining() -> set[int]:
    broker = MemoryBroker({"jobs": 2})
    first, second = MemorySource(broker, "a", ["jobs"]), MemorySource(broker, "b", ["jobs"])
    first.poll(1, 0.0)
    second.poll(1, 0.0)
    return {place.partition for place, owner in broker.group.owners.items() if owner == "a"}


def test_the_one_event_that_nothing_can_handle_becomes_a_dead_letter() -> None:
    scene = Scene()
    for number in range(100):
        scene.put(event(f"j{number}"))
    scene.database.poison = lambda stored: stored.job_id in {"j37", "j38", "j99"}
    scene.run()
    assert scene.database.jobs() == {f"j{n}" for n in range(100) if n not in {37, 38, 99}}
    assert scene.database.places() == scene.topic.places() == {"jobs/0/37", "jobs/0/38", "jobs/0/99"}
    assert scene.committed() == 100
    assert scene.topic.sent[0].record.value == event("j37")
    assert "ValueError" in scene.topic.sent[0].letter.reason
    assert "secret" not in scene.topic.sent[0].letter.reason


def test_a_broken_service_stops_it_instead_of_turning_every_failure_into_a_dead_letter() -> None:
    scene = Scene(ConsumerLimits(events=90))
    for number in range(900):
        scene.put(event(f"j{number}"))
    scene.database.poison = lambda stored: int(stored.job_id[1:]) % 3 == 0
    with pytest.raises(TooManyDeadLetters, match=r"60 of the last 180 events .* ValueError\. More likely this service"):
        scene.run()
    assert scene.committed() == 180
    assert len(scene.topic.sent) == 60
    assert len(scene.database.jobs()) == 120


def test_a_failure_that_passes_costs_nothing() -> None:
    scene = Scene()
    for number in range(10):
        scene.put(event(f"j{number}"))
    failures = [True]
    scene.database.poison = lambda _event: bool(failures) and failures.pop()
    scene.run()
    assert scene.database.batches == [10]
    assert not scene.topic.sent


def test_offsets_wait_for_the_dead_letter_topic() -> None:
    scene = Scene()
    scene.put(b"{")
    scene.topic.down = 3
    seen: list[int | None] = []
    send = scene.topic.send

    def watched(rejected: Sequence[Rejected]) -> None:
        seen.append(scene.committed())
        send(rejected)

    scene.topic.send = watched  # type: ignore[method-assign]
    scene.run()
    assert seen == [0] * 4  # the offset of the record itself
    assert scene.committed() == 1
    assert len(scene.topic.sent) == 1


def test_too_many_dead_letters_in_a_row_stop_it_loudly() -> None:
    scene = Scene(ConsumerLimits(dead_letters=5))
    for _ in range(3):
        scene.put(b"{")
    scene.put(event("good"))
    for _ in range(12):
        scene.put(b"{")
    with pytest.raises(TooManyDeadLetters, match=r"5 records in a row .* jobs/0/8: not JSON"):
        scene.run()
    assert scene.database.jobs() == {"good"}
    assert len(scene.topic.sent) == len(scene.database.letters) == 8
    assert scene.committed() == 9  # what follows stays on the topic


def test_bad_records_between_good_ones_never_stop_it() -> None:
    scene = Scene(ConsumerLimits(dead_letters=5))
    for number in range(60):
        scene.put(event(f"j{number}") if number % 5 == 0 else b"{")
    scene.run()
    assert len(scene.topic.sent) == 48


def test_survives_a_broker_that_goes_away() -> None:
    scene = Scene()
    for number in range(10):
        scene.put(event(f"j{number}"))
    scene.broker.up = False

    def later() -> bool:
        scene.broker.up = scene.clock.seconds > 30
        return scene.caught_up()

    scene.run(until=later)
    assert len(scene.database.jobs()) == 10


def test_offsets_that_could_not_be_committed_go_with_a_later_try() -> None:
    scene = Scene()
    scene.put(event("a"))
    commit, refusals = scene.source.commit, [1, 1, 1]

    def refusing(offsets: Mapping[TopicPartition, Committed]) -> None:
        if refusals:
            refusals.pop()
            raise Unavailable("the coordinator moves")
        commit(offsets)

    scene.source.commit = refusing  # type: ignore[method-assign]
    scene.run()
    assert scene.committed() == 1
    assert scene.database.batches == [1]


def test_ends_when_another_member_has_taken_its_name() -> None:
    scene = Scene()
    scene.put(event("a"))

    def taken() -> None:
        MemorySource(scene.broker, "a", ["jobs"]).poll(1, 0.0)

    scene.database.before = taken
    with pytest.raises(ConfigurationError, match="taken over the name"):
        scene.run()
    assert not scene.committed()


def test_on_a_signal_it_finishes_the_batch_commits_and_leaves() -> None:
    scene = Scene(ConsumerLimits(events=10))
    for number in range(30):
        scene.put(event(f"j{number}"))
    scene.run(until=lambda: len(scene.database.batches) >= 1)
    assert len(scene.database.jobs()) == scene.committed() == 10
    assert scene.broker.group.members == []


def test_log_lines_hold_no_record(caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene()
    scene.put(b'{"password": "hunter2-hunter2"')
    scene.put(event("a", command="hunter2-hunter2"))
    scene.database.down = 2
    with caplog.at_level(logging.DEBUG):
        scene.run()
    assert "hunter2" not in caplog.text


def test_measures_how_far_behind_it_is() -> None:
    scene = Scene()
    for number in range(5):
        scene.put(event(f"j{number}"))
    behind: list[float] = []

    def level() -> bool:
        lag = scene.telemetry.registry.get_sample_value("faultline_consumer_lag_records", {"topic": "jobs"})
        behind.extend([] if lag is None else [lag])
        scene.clock.sleep(1)
        return lag == 0

    scene.run(until=level)
    assert set(behind) == {5, 0}


def test_the_lag_is_unknown_while_the_broker_does_not_answer() -> None:
    """An alert asks whether the metric is missing: its last value would stay for as long as the outage lasts."""
    scene = Scene()
    scene.put(event("a"))

    def unknown() -> bool:
        lag = scene.telemetry.registry.get_sample_value("faultline_consumer_lag_records", {"topic": "jobs"})
        scene.broker.up = scene.broker.up and lag != 0
        scene.clock.sleep(30)
        return lag is None and not scene.broker.up

    scene.run(until=unknown)
    assert scene.telemetry.registry.get_sample_value("faultline_consumer_lag_records", {"topic": "jobs"}) is None
