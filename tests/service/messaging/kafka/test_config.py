import socket
from pathlib import Path
from types import SimpleNamespace

import pytest
from kafka.errors import KafkaConnectionError, KafkaProtocolError
from kafka.protocol.parser import KafkaProtocol

from service.errors import ConfigurationError
from service.messaging.kafka import connect
from service.messaging.kafka.config import KafkaConfig, instance_id, topic_clusters


def config(**changes: object) -> KafkaConfig:
    settings: dict[str, object] = {"bootstrap_servers": ("127.0.0.1:9092",), "topics": ("jobs",)}
    return KafkaConfig(**{**settings, **changes})  # type: ignore[arg-type]


def test_a_topic_names_its_cluster_or_is_it() -> None:
    assert topic_clusters(("slurm-jobs=orion", "events")) == {"slurm-jobs": "orion", "events": "events"}


@pytest.mark.parametrize("wrong", ["", "=orion", "a b", "jobs=", "x" * 250, "..", "jobs/x=orion"])
def test_a_wrong_topic_is_named_with_what_was_expected(wrong: str) -> None:
    with pytest.raises(ConfigurationError, match=r"FAULTLINE_KAFKA_TOPICS: expected"):
        config(topics=("fine", wrong))


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"bootstrap_servers": ()}, "FAULTLINE_KAFKA_BOOTSTRAP_SERVERS"),
        ({"topics": ()}, "FAULTLINE_KAFKA_TOPICS"),
        ({"topics": ("jobs", "jobs=orion")}, "FAULTLINE_KAFKA_TOPICS: expected each topic once"),
        ({"group_id": ""}, "FAULTLINE_KAFKA_GROUP_ID"),
        ({"dead_letter_topic": "not a topic"}, "FAULTLINE_DEAD_LETTER_TOPIC"),
        ({"ssl_cafile": Path("ca.pem")}, "FAULTLINE_KAFKA_SECURITY_PROTOCOL: expected with FAULTLINE_KAFKA_SSL_CAFILE"),
        ({"ssl_keyfile": Path("k"), "security_protocol": "SASL_PLAINTEXT"}, "FAULTLINE_KAFKA_SECURITY_PROTOCOL"),
        ({"sasl_password": "x", "security_protocol": "SSL"}, "FAULTLINE_KAFKA_SECURITY_PROTOCOL"),
        ({"security_protocol": "SASL_SSL"}, "FAULTLINE_KAFKA_SASL_MECHANISM: expected a value with SASL_SSL"),
        ({"security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN"}, "FAULTLINE_KAFKA_SASL_USERNAME"),
        ({"dead_letter_topic": "jobs"}, "FAULTLINE_DEAD_LETTER_TOPIC: expected a topic that is not read"),
    ],
)
def test_what_is_missing_or_wrong_is_named(changes: dict[str, object], name: str) -> None:
    with pytest.raises(ConfigurationError, match=name):
        config(**changes)


def test_secrets_are_not_shown() -> None:
    login = {"sasl_mechanism": "PLAIN", "sasl_username": "reader", "sasl_password": "hunter2"}
    made = config(security_protocol="SASL_SSL", ssl_password="hunter3", **login)
    assert not made.sends_password
    assert config(security_protocol="SASL_PLAINTEXT", **login).sends_password
    assert "hunter" not in repr(made)
    assert made.connection()["sasl_plain_password"] == "hunter2"
    assert made.connection()["ssl_password"] == "hunter3"


@pytest.mark.parametrize("beginning", [b"\x15\x03\x03\x00", b"HTTP", b"\x3f\xff\xff\xff", b"\xff\xff\xff\xff"])
def test_no_memory_is_taken_for_what_no_broker_sends(beginning: bytes) -> None:
    """A port of TLS, of a web server, or a hostile broker: four bytes took a gigabyte for each connection."""
    parser = KafkaProtocol(receive_message_max_bytes=config().frame_bytes)
    with pytest.raises(KafkaProtocolError):
        parser.receive_bytes(beginning)


class Endless:
    """A connection whose other side sends faster than it is read; with TLS, some of it is decrypted already."""

    def __init__(self, decrypted: int = 0) -> None:
        self.decrypted = decrypted
        self.sent = 0

    def recv(self, size: int) -> bytes:
        assert self.sent < 10 * connect.PORTION_BYTES
        self.sent += size
        self.decrypted = max(0, self.decrypted - size)
        return bytes(size)

    def pending(self) -> int:
        return self.decrypted


@pytest.mark.parametrize("decrypted", [0, 3 * connect.PORTION_BYTES])
def test_an_answer_without_an_end_is_read_in_portions(decrypted: int) -> None:
    found, error = connect.received(SimpleNamespace(_sock=Endless(decrypted)))
    assert error is None
    assert len(found) == max(connect.PORTION_BYTES, decrypted)


def test_what_was_received_before_the_end_is_not_lost() -> None:
    here, there = socket.socketpair()
    with here, there:
        here.setblocking(False)
        there.sendall(b"answer")
        assert connect.received(SimpleNamespace(_sock=here)) == (b"answer", None)
        there.sendall(b"last")
        there.close()
        found, error = connect.received(SimpleNamespace(_sock=here))
    assert found == b"last"
    assert isinstance(error, KafkaConnectionError)


def test_a_members_name_is_stable_and_one_that_kafka_takes() -> None:
    assert instance_id("faultline", "node-1", 2) == "faultline-node-1-2"
    assert instance_id("gruppe äöü", "host/1", 0) == "gruppe____-host_1-0"
    assert len(instance_id("g" * 200, "h" * 200, 17)) <= 249
