import uuid

import pytest

from service.errors import Unavailable
from service.messaging.kafka.config import KafkaConfig
from service.messaging.kafka.connect import ensure_topic
from tests.labs.kafka import Broker
from tests.labs.ports import free_port

pytestmark = pytest.mark.xdist_group("kafka")  # one broker for all files of the group


@pytest.mark.lab
def test_makes_a_topic_once(kafka_broker: Broker) -> None:
    topic = f"dead-{uuid.uuid4().hex[:8]}"
    config = KafkaConfig((kafka_broker.address,), ("jobs",))
    assert ensure_topic(config, topic)
    assert not ensure_topic(config, topic)
    admin = kafka_broker.admin()
    assert topic in admin.list_topics()
    admin.close()


def test_without_a_broker_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.messaging.kafka.connect.ASK_MS", 600)
    with pytest.raises(Unavailable, match="could not connect"):
        ensure_topic(KafkaConfig((f"127.0.0.1:{free_port()}",), ("jobs",)), "dead")
