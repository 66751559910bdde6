"""A process without partitions has asked no broker how many records wait, and says nothing of it."""

from typing import Any

import pytest

from service.errors import Unavailable
from service.messaging.consumer import ConsumerLimits
from service.messaging.kafka.config import KafkaConfig
from service.messaging.kafka.source import KafkaSource
from tests.service.messaging.fakes import event
from tests.service.messaging.test_consumer import Scene


class WithoutPartitions:
    """A client that lost its partitions, as all do while the broker is away for longer than a session."""

    def assignment(self) -> set[Any]:
        return set()


def test_a_process_without_partitions_knows_no_lag() -> None:
    """It said 0, so that the alert of a lag that nobody knows did not fire while the broker was down."""
    source = KafkaSource(KafkaConfig(("127.0.0.1:9092",), ("jobs",)))
    source._consumer = WithoutPartitions()
    assert source.lag() == {}


def test_the_lag_is_unknown_once_the_broker_takes_no_offsets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records that were read before it went away are handled one after the other, and each waits for the commit."""
    scene = Scene(ConsumerLimits(events=1))
    for number in range(5):
        scene.put(event(f"j{number}"))
    shown: list[float | None] = []

    def refuse(_: object) -> None:
        shown.append(scene.telemetry.registry.get_sample_value("faultline_consumer_lag_records", {"topic": "jobs"}))
        raise Unavailable("Kafka: could not commit offsets: KafkaTimeoutError")

    monkeypatch.setattr(scene.source, "commit", refuse)
    scene.run(until=lambda: len(shown) > 3)
    assert (shown[0], shown[-1]) == (5, None)


@pytest.mark.parametrize("waits_for", ["database", "topic of dead letters"])
def test_the_lag_is_measured_while_a_batch_waits(waits_for: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that waited for one of both kept its last value, whatever arrived meanwhile and if nobody answered."""
    scene = Scene()
    for number in range(5):
        scene.put(event(f"j{number}"))
    scene.put(b"no event")
    answers = iter([{"jobs": 6}, {"jobs": 9}])

    def lag() -> dict[str, int]:
        answer = next(answers, None)
        if answer is None:
            raise Unavailable("Kafka: could not ask for the lag")
        return answer

    def down(*_: object) -> None:
        shown.append(scene.telemetry.registry.get_sample_value("faultline_consumer_lag_records", {"topic": "jobs"}))
        scene.clock.sleep(15)
        raise Unavailable("no answer")

    shown: list[float | None] = []
    monkeypatch.setattr(scene.source, "lag", lag)
    if waits_for == "database":
        scene.database.before = down
    else:
        monkeypatch.setattr(scene.topic, "send", down)
    scene.run(until=lambda: len(shown) > 4)
    assert shown[:2] == [6, 9]
    assert shown[-1] is None


def test_the_metric_is_removed_with_the_last_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene()
    answers = iter([{"jobs": 7}])
    monkeypatch.setattr(scene.source, "lag", lambda: next(answers, {}))
    shown: list[float | None] = []

    def seen_twice() -> bool:
        shown.append(scene.telemetry.registry.get_sample_value("faultline_consumer_lag_records", {"topic": "jobs"}))
        scene.clock.sleep(30)
        return len(shown) > 4

    scene.run(until=seen_twice)
    assert 7 in shown
    assert shown[-1] is None
