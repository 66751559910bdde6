import uuid
from collections.abc import Sequence

import orjson
import pytest

from service.deliveries.channels.topic import TopicChannel
from service.errors import ConfigurationError, FaultlineError, TooLarge, Unavailable
from service.messaging.kafka.config import KafkaConfig
from service.messaging.kafka.connect import ensure_topic
from service.messaging.kafka.producer import Producer
from service.messaging.kafka.source import KafkaSource
from service.messaging.record import Message
from tests.contracts.test_source import take
from tests.labs.kafka import Broker as RealBroker
from tests.service.deliveries.sample_messages import due

pytestmark = pytest.mark.xdist_group("kafka")  # one broker for all files of the group


class Broker:
    def __init__(self, error: FaultlineError | None = None) -> None:
        self.error = error
        self.got: list[Message] = []
        self.closed = False

    def send(self, topic: str, messages: Sequence[Message]) -> None:
        assert topic == "verdicts"
        if self.error is not None:
            raise self.error
        self.got.extend(messages)

    def close(self) -> None:
        self.closed = True


def test_verdicts_lie_under_their_job_in_the_order_of_their_making() -> None:
    broker, made = Broker(), []
    channel = TopicChannel("verdicts", broker, lambda: made.append("topic"))
    assert channel.send([due(8), due(7)]).kind == "sent"
    assert channel.send([due(7)]).kind == "sent"
    assert made == ["topic"]
    assert [one.key for one in broker.got] == [b"orion/7", b"orion/8", b"orion/7"]
    first, _, again = [orjson.loads(one.value or b"") for one in broker.got]
    assert first == again
    assert dict(broker.got[0].headers)["id"].decode() == first["id"]
    assert first["data"]["verdict"]["job_id"] == "7"
    channel.close()
    assert broker.closed


@pytest.mark.parametrize(
    ("error", "kind"), [(Unavailable("x"), "retry"), (ConfigurationError("x"), "retry"), (TooLarge("x"), "refused")]
)
def test_a_message_that_the_broker_refuses_is_reported(error: FaultlineError, kind: str) -> None:
    assert TopicChannel("verdicts", Broker(error), lambda: None).send([due(7)]).kind == kind


def test_a_topic_that_can_t_be_made_is_tried_again() -> None:
    tries: list[int] = []

    def prepare() -> None:
        tries.append(1)
        if len(tries) == 1:
            raise Unavailable("no broker")

    channel = TopicChannel("verdicts", Broker(), prepare)
    assert [channel.send([due(7)]).kind for _ in range(2)] == ["retry", "sent"]


@pytest.mark.lab
def test_on_a_real_broker(kafka_broker: RealBroker) -> None:
    topic = f"verdicts-{uuid.uuid4().hex[:8]}"
    config = KafkaConfig((kafka_broker.address,), (topic,), group_id=f"g-{topic}", dead_letter_topic="dead")
    channel = TopicChannel(topic, Producer(config), lambda: ensure_topic(config, topic))
    assert channel.send([due(7), due(8)]).kind == "sent"
    channel.close()
    source = KafkaSource(config)
    try:
        back = take(source, 2)
    finally:
        source.close()
    assert {one.key: orjson.loads(one.value or b"")["data"]["failure_id"] for one in back} == {
        b"orion/7": 7,
        b"orion/8": 8,
    }
