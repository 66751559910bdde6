from pathlib import Path

import pytest

from service.errors import ConfigurationError
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


def test_a_members_name_is_stable_and_one_that_kafka_takes() -> None:
    assert instance_id("faultline", "node-1", 2) == "faultline-node-1-2"
    assert instance_id("gruppe äöü", "host/1", 0) == "gruppe____-host_1-0"
    assert len(instance_id("g" * 200, "h" * 200, 17)) <= 249
