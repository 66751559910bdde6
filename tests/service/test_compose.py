"""The composition root: parts are made when asked for, and what can't be made is said clearly."""

import threading
from pathlib import Path
from unittest.mock import Mock

import pytest

from service import compose, settings
from service.errors import ConfigurationError


def build(tmp_path: Path, **environ: str) -> compose.ProcessServices:
    return compose.build(settings.read({"FAULTLINE_DATABASE_URL": f"sqlite:///{tmp_path}/x.sqlite3", **environ}))


def test_nothing_is_created_before_it_is_used(tmp_path: Path) -> None:
    services = build(tmp_path, FAULTLINE_MODEL_DIR=str(tmp_path / "nothing"))
    services.close()
    assert list(tmp_path.iterdir()) == []


def test_a_model_that_is_not_there_is_named_by_its_setting(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="FAULTLINE_MODEL_DIR"):
        _ = build(tmp_path, FAULTLINE_MODEL_DIR=str(tmp_path / "nothing")).diagnoser


def test_no_broker_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="FAULTLINE_KAFKA_BOOTSTRAP_SERVERS"):
        _ = build(tmp_path).kafka


def test_kafka_settings_reach_the_client(tmp_path: Path) -> None:
    config = build(
        tmp_path,
        FAULTLINE_KAFKA_BOOTSTRAP_SERVERS="a:9092,b:9092",
        FAULTLINE_KAFKA_TOPICS="slurm=orion",
        FAULTLINE_KAFKA_SECURITY_PROTOCOL="SASL_SSL",
        FAULTLINE_KAFKA_SASL_MECHANISM="SCRAM-SHA-512",
        FAULTLINE_KAFKA_SASL_USERNAME="faultline",
        FAULTLINE_KAFKA_SASL_PASSWORD="hunter2",
    ).kafka
    assert config.clusters == {"slurm": "orion"}
    assert config.connection()["sasl_plain_password"] == "hunter2"
    assert "hunter2" not in repr(config)


def test_the_pages_know_the_clusters_of_topics(tmp_path: Path) -> None:
    services = build(tmp_path, FAULTLINE_KAFKA_TOPICS="jobs,api_key=orion12", FAULTLINE_NODE_EVENT_TOPIC="nodes = lyra")
    object.__setattr__(services, "diagnoser", Mock())
    web = services.web()
    assert (web.topics, web.node_event_topics) == ({"jobs": "jobs", "api_key": "orion12"}, {"nodes": "lyra"})
    services.close()


def test_every_producer_is_closed_with_the_services(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Mock] = []

    def producer(_config: object) -> Mock:
        made.append(Mock())
        return made[-1]

    monkeypatch.setattr(compose, "Producer", producer)
    monkeypatch.setattr(compose, "KafkaSource", Mock())
    services = build(tmp_path, FAULTLINE_KAFKA_BOOTSTRAP_SERVERS="a:9092", FAULTLINE_NODE_EVENT_TOPIC="nodes")
    assert services.node_event_kafka is not None
    services.node_consumer(services.node_event_kafka, "member")
    services.close()
    assert made
    for one in made:
        one.close.assert_called_once()


def test_an_invalid_delivery_file_is_reported_before_any_delivery(tmp_path: Path) -> None:
    file = tmp_path / "delivery.toml"
    file.write_text(
        '[[endpoint]]\nname = "a"\nkind = "webhook"\nurl = "https://hook.example"\nsecrets = ["env:NO_SUCH"]'
    )
    services = build(tmp_path, FAULTLINE_DELIVERY_FILE=str(file))
    with pytest.raises(ConfigurationError, match="NO_SUCH"):
        _ = services.delivery


def test_nothing_is_delivered_without_a_delivery_file(tmp_path: Path) -> None:
    services = build(tmp_path)
    before = threading.active_count()
    with services.delivering():
        assert threading.active_count() <= before
    assert list(tmp_path.iterdir()) == []
