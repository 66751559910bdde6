"""A topic of dead letters that is missing or refuses records: nothing is skipped, lost or committed before."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import pytest
from kafka import KafkaProducer
from kafka.admin import ConfigResource, ConfigResourceType

from service.errors import ConfigurationError, FaultlineError, Unavailable
from service.messaging.kafka import bounded_codecs
from service.messaging.kafka.config import KafkaConfig
from service.messaging.kafka.connect import connected
from service.messaging.kafka.consumer_lag import LagReader
from service.messaging.kafka.producer import Producer
from service.messaging.kafka.source import KafkaSource
from service.messaging.record import Message
from tests.contracts.test_source import take
from tests.labs.kafka import Broker, broker
from tests.service.messaging.fakes import event
from tests.service.messaging.kafka.test_source import Running, config_for

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("kafka")]

SENT = (event("a"), b"{", event("b"), b"[")  # two of them can't be read
PATIENCE_S = 120.0


class Refused(Running):
    """Remembers why the topic of dead letters took nothing."""

    def __init__(self, config: KafkaConfig) -> None:
        super().__init__(config, delivery_s=1.0)
        self.refusals: list[FaultlineError] = []
        genuine = self.producer.send

        def send(topic: str, messages: Sequence[Message]) -> None:
            try:
                genuine(topic, messages)
            except FaultlineError as error:
                self.refusals.append(error)
                raise

        self.producer.send = send  # type: ignore[method-assign]


def until(done: Callable[[], bool], what: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not done():
        assert time.monotonic() < deadline, what()
        time.sleep(0.1)


@contextmanager
def published(config: KafkaConfig) -> Iterator[LagReader]:
    """Publishes what is `SENT` to one partition; yields what counts the records without a committed offset."""
    producer = Producer(config)
    producer.send(next(iter(config.clusters)), [Message(one, b"one key") for one in SENT])
    producer.close()
    lag = LagReader(config)
    yield lag
    lag.close()


def change(on: Broker, topic: str, settings: Mapping[str, str]) -> None:
    admin = on.admin()
    admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, dict(settings))])
    admin.close()


def letters(config: KafkaConfig) -> list[bytes | None]:
    """The records on the topic of dead letters, each once: those that were not acknowledged are sent again."""
    source = KafkaSource(KafkaConfig(config.bootstrap_servers, (config.dead_letter_topic,), group_id="reads-letters"))
    try:
        return sorted({one.value for one in take(source, 2)}, key=str)
    finally:
        source.close()


def test_records_wait_for_a_topic_that_is_missing() -> None:
    with broker(creates_topics=False) as alone:
        config = config_for(alone)
        topic = alone.create_topic(next(iter(config.clusters)))
        with published(config) as lag:
            with Refused(config) as first:
                until(lambda: len(first.refusals) > 1, lambda: first.error)
                assert isinstance(first.refusals[0], Unavailable)
                assert config.dead_letter_topic in first.refusals[0].detail
                assert lag.read() == {topic: len(SENT)}
            assert first.error is None
            assert lag.read() == {topic: len(SENT)}, "a stop commits nothing that is not on the topic"
            with Refused(config) as second:
                until(lambda: bool(second.refusals), lambda: second.error)
                alone.create_topic(config.dead_letter_topic)
                until(lambda: lag.read() == {topic: 0}, lambda: second.refusals[-1].detail)
        assert letters(config) == [b"[", b"{"]
        assert second.database.jobs() == {"a", "b"}
        assert len(second.database.letters) == 2


def test_records_wait_for_a_topic_whose_settings_refuse_them(kafka_broker: Broker) -> None:
    """Records are older than the topic allows, since each waits a moment for others before it is sent."""
    config = config_for(kafka_broker)
    topic = next(iter(config.clusters))
    kafka_broker.create_topic(config.dead_letter_topic, 1, message_timestamp_before_max_ms="0")
    with published(config) as lag, Refused(config) as running:
        until(lambda: any(isinstance(one, Unavailable) for one in running.refusals), lambda: running.error)
        assert lag.read() == {topic: len(SENT)}
        change(kafka_broker, config.dead_letter_topic, {"message.timestamp.before.max.ms": "3600000"})
        until(lambda: lag.read() == {topic: 0}, lambda: running.refusals[-1].detail)
    assert letters(config) == [b"[", b"{"]
    assert running.database.jobs() == {"a", "b"}


def test_a_topic_that_refuses_records_for_good_ends_the_worker_and_nothing_is_committed(kafka_broker: Broker) -> None:
    """A compacted topic takes no record without a key."""
    config = config_for(kafka_broker)
    topic = next(iter(config.clusters))
    kafka_broker.create_topic(config.dead_letter_topic, 1, cleanup_policy="compact")
    producer = Producer(config)
    producer.send(topic, [Message(one) for one in SENT])
    producer.close()
    lag = LagReader(config)
    for _ in range(8):  # more often than a record may end its process
        with Refused(config) as refused:
            until(lambda: refused.error is not None, lambda: refused.refusals)
        assert isinstance(refused.error, ConfigurationError)
        assert config.dead_letter_topic in refused.error.detail
        assert "without key" in refused.error.detail
        assert sum(lag.read().values()) == len(SENT)
        assert len(refused.database.letters) <= 2
    change(kafka_broker, config.dead_letter_topic, {"cleanup.policy": "delete"})
    with Refused(config) as running:
        until(lambda: lag.read() == {topic: 0}, lambda: running.error)
    lag.close()
    assert letters(config) == [b"[", b"{"]
    assert running.database.jobs() == {"a", "b"}


def test_a_batch_on_a_topic_that_unpacks_to_more_stops_no_worker(
    kafka_broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_codecs, "MOST_BYTES", 100_000)
    config = config_for(kafka_broker)
    topic = next(iter(config.clusters))
    plain, packed = (
        connected(KafkaProducer, bootstrap_servers=kafka_broker.address, compression_type=one) for one in (None, "zstd")
    )
    plain.send(topic, event("before"), partition=0).get(120)
    place = packed.send(topic, b"x" * 900_000, partition=0).get(120)
    plain.send(topic, event("after"), partition=0).get(120)
    for producer in (plain, packed):
        producer.close()
    with Running(config) as running:
        running.until({"before", "after"})
        source = KafkaSource(KafkaConfig(config.bootstrap_servers, (config.dead_letter_topic,), group_id=topic))
        [letter] = take(source, 1)
        source.close()
    headers = dict(letter.headers)
    assert headers["faultline-place"] == f"{topic}/0/{place.offset}".encode()
    assert b"are not read and stay on the topic" in headers["faultline-reason"]
    assert running.error is None
