import random
import threading
import uuid
from collections.abc import Iterator

import pytest

from service.errors import TooLarge, Unavailable, UnreadableRecord
from service.messaging.dead_letters import DeadLetterSender, Rejected, dead_letter
from service.messaging.kafka.config import KafkaConfig
from service.messaging.kafka.producer import Producer
from service.messaging.kafka.source import KafkaSource
from service.messaging.record import Message, Record
from tests.contracts.test_source import take
from tests.labs.kafka import Broker
from tests.labs.ports import free_port

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("kafka")]  # one broker for all files of the group


@pytest.fixture
def config(kafka_broker: Broker) -> KafkaConfig:
    name = uuid.uuid4().hex[:8]
    return KafkaConfig((kafka_broker.address,), (f"in-{name}",), group_id=f"g-{name}", dead_letter_topic=f"dead-{name}")


@pytest.fixture
def producer(config: KafkaConfig) -> Iterator[Producer]:
    made = Producer(config)
    yield made
    made.close()


def read_back(config: KafkaConfig, topic: str, count: int) -> list[Record]:
    source = KafkaSource(KafkaConfig(config.bootstrap_servers, (topic,), group_id=f"{config.group_id}-back"))
    try:
        return take(source, count)
    finally:
        source.close()


def test_send_returns_after_the_broker_has_the_messages(config: KafkaConfig, producer: Producer) -> None:
    sent = [Message(b"%d" % number, key=b"k%d" % (number % 3), headers=[("n", b"x")]) for number in range(500)]
    producer.send("in-" + config.group_id[2:], sent)
    back = read_back(config, config.topics[0], 500)
    assert sorted(int(one.value or b"") for one in back) == list(range(500))
    for key in (b"k0", b"k1", b"k2"):
        mine = [int(one.value or b"") for one in back if one.key == key]
        assert mine == sorted(mine)
        assert len({one.partition for one in back if one.key == key}) == 1


def test_says_what_the_broker_does_not_take(config: KafkaConfig, producer: Producer, kafka_broker: Broker) -> None:
    topic = kafka_broker.create_topic(config.topics[0], 1, max_message_bytes="20000")
    with pytest.raises(TooLarge):
        producer.send(topic, [Message(random.Random(7).randbytes(60_000))])
    producer.send(topic, [Message(b"small")])
    assert [one.value for one in read_back(config, topic, 1)] == [b"small"]


def test_without_a_broker_it_says_so_and_leaves_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.messaging.kafka.producer.BOOTSTRAP_MS", 500)
    before = threading.active_count()
    producer = Producer(KafkaConfig((f"127.0.0.1:{free_port()}",), ("jobs",)), delivery_s=1.0)
    with pytest.raises(Unavailable, match="could not connect"):
        producer.send("jobs", [Message(b"x")])
    assert threading.active_count() <= before


def test_dead_letters_arrive_as_they_were_with_reason_and_place(config: KafkaConfig, producer: Producer) -> None:
    records = [
        Record(b"\x00\xff{", (("ce_id", b"\xfe"),), "jobs", 2, 7, "orion", b"key"),
        Record(None, (), "jobs", 2, 8, "orion"),
    ]
    error = UnreadableRecord("not JSON")
    DeadLetterSender(producer, config.dead_letter_topic).send(
        [Rejected(one, dead_letter(one.value, one.place, error)) for one in records]
    )
    back = {dict(one.headers)["faultline-place"]: one for one in read_back(config, config.dead_letter_topic, 2)}
    first = back[b"jobs/2/7"]
    assert (first.value, first.key) == (b"\x00\xff{", b"key")
    assert dict(first.headers)["ce_id"] == b"\xfe"
    assert dict(first.headers)["faultline-reason"] == b"not JSON"
    assert dict(first.headers)["faultline-cluster"] == b"orion"
    assert back[b"jobs/2/8"].value == b""


def test_a_letter_that_the_topic_does_not_take_comes_cut_and_says_so(
    config: KafkaConfig, producer: Producer, kafka_broker: Broker
) -> None:
    kafka_broker.create_topic(config.dead_letter_topic, 1, max_message_bytes="30000")
    raw = random.Random(7).randbytes(96_000)
    small, large = Record(b"{", (), "jobs", 0, 1, "orion"), Record(raw, (("h", raw[:50_000]),), "jobs", 0, 2, "orion")
    error = UnreadableRecord("not JSON")
    DeadLetterSender(producer, config.dead_letter_topic).send(
        [Rejected(one, dead_letter(one.value, one.place, error)) for one in (small, large)]
    )
    back = {dict(one.headers)["faultline-place"]: one for one in read_back(config, config.dead_letter_topic, 2)}
    assert back[b"jobs/0/1"].value == b"{"
    cut = back[b"jobs/0/2"]
    assert raw.startswith(cut.value or b"-")
    assert dict(cut.headers)["faultline-cut"] == b"16384 of 96000 bytes, 1 headers left out"
    assert dict(cut.headers)["faultline-sha256"].decode() == dead_letter(raw, "", error).sha256
