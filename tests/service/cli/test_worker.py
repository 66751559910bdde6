import json
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from service.__main__ import main
from service.cli.exit_codes import TOO_MANY_DEAD_LETTERS
from service.cli.processes.worker import claimed, warn_if_root
from service.db.session import Store
from service.errors import ConfigurationError
from service.messaging.kafka.config import KafkaConfig
from service.messaging.kafka.producer import Producer
from service.messaging.record import Message
from tests.flows.crashes import model_dir
from tests.labs.kafka import Broker
from tests.labs.need import missing
from tests.service.databases import copy_migrated

pytestmark = pytest.mark.xdist_group("kafka")  # one broker for all files of the group


def event(job_id: str) -> bytes:
    return json.dumps(
        {"job_id": job_id, "status": "failed", "ended_at": "2026-11-20T03:41:57Z", "logs": [{"tail": "KeyError: 'x'"}]}
    ).encode()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--processes", "2"], "SQLite takes one writer at a time, so more than one process needs PostgreSQL"),
        (["--processes", "0"], "--processes: expected 1 to 64, got 0"),
        ([], "FAULTLINE_KAFKA_BOOTSTRAP_SERVERS: expected host:port"),
    ],
)
def test_refuses_what_can_not_work_with_the_reason(
    arguments: list[str], expected: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FAULTLINE_DATABASE_URL", "sqlite:///unused.sqlite3")
    monkeypatch.delenv("FAULTLINE_KAFKA_BOOTSTRAP_SERVERS", raising=False)
    assert main(["worker", *arguments]) == 2
    assert expected in capsys.readouterr().err


@pytest.mark.parametrize(("user", "warnings"), [(0, 1), (1_000, 0)])
def test_a_process_that_can_read_every_file_warns(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, user: int, warnings: int
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    warn_if_root()
    assert [one.levelname for one in caplog.records if "running as root" in one.message] == ["WARNING"] * warnings


def test_reserved_numbers_are_released_after_an_error() -> None:
    scope = uuid.uuid4().hex
    with suppress(ConfigurationError), claimed(scope, 2) as numbers:
        assert numbers == [0, 1]
        raise ConfigurationError("wrong")
    with claimed(scope, 1) as numbers:
        assert numbers == [0]


class Running:
    """`faultline worker` on SQLite."""

    def __init__(self, folder: Path, broker: Broker, **settings: str) -> None:
        if not (model_dir() / "manifest.json").exists():
            missing("there is no trained model (make install)")
        name = uuid.uuid4().hex[:8]
        self.config = KafkaConfig((broker.address,), (f"jobs-{name}=orion",), group_id=name)
        url = copy_migrated(folder / "worker.sqlite3")
        self.store = Store(url)
        kept = {name: value for name, value in os.environ.items() if not name.startswith("FAULTLINE_")}
        self.log = folder / "log"
        self.environment = kept | {
            "FAULTLINE_DATABASE_URL": url,
            "FAULTLINE_KAFKA_BOOTSTRAP_SERVERS": broker.address,
            "FAULTLINE_KAFKA_TOPICS": self.config.topics[0],
            "FAULTLINE_KAFKA_GROUP_ID": self.config.group_id,
            "FAULTLINE_DEAD_LETTER_TOPIC": f"dead-{name}",
            "FAULTLINE_MODEL_DIR": str(model_dir()),
            **settings,
        }

    def start(self) -> "subprocess.Popen[bytes]":
        with self.log.open("ab") as log:
            return subprocess.Popen([sys.executable, "-m", "service", "worker"], env=self.environment, stderr=log)

    def publish(self, values: list[bytes]) -> None:
        producer = Producer(self.config)
        producer.send(next(iter(self.config.clusters)), [Message(value, b"one partition") for value in values])
        producer.close()

    def stored(self) -> int:
        with self.store.reading() as reading:
            return len(reading.failures.page().items)

    def until(self, happened: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 90
        while not happened():
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.1)


@pytest.mark.lab
def test_it_stores_what_is_on_the_topic_and_stops_on_a_signal(tmp_path: Path, kafka_broker: Broker) -> None:
    running = Running(tmp_path, kafka_broker)
    with running.start() as process:
        running.publish([event("a"), b"{", event("b")])
        running.until(lambda: running.stored() == 2)
        process.terminate()
        assert process.wait(60) == 0
    admin = kafka_broker.admin()
    members = admin.describe_groups([running.config.group_id])[running.config.group_id]["members"]
    admin.close()
    assert members == []
    with running.store.reading() as reading:
        assert len(reading.dead_letters.page().items) == 1
    running.store.close()


@pytest.mark.lab
def test_too_many_dead_letters_in_a_row_end_it_with_a_code_of_its_own(tmp_path: Path, kafka_broker: Broker) -> None:
    running = Running(tmp_path, kafka_broker, FAULTLINE_DEAD_LETTER_LIMIT="5")
    running.publish([event("a"), *[b"{"] * 20])
    with running.start() as process:
        assert process.wait(90) == TOO_MANY_DEAD_LETTERS
    assert "5 records in a row could not be read" in running.log.read_text()
    assert running.stored() == 1
    running.store.close()


@pytest.mark.lab
def test_node_events_arrive_by_their_own_topic(tmp_path: Path, kafka_broker: Broker) -> None:
    topic = f"nodes-{uuid.uuid4().hex[:8]}"
    running = Running(tmp_path, kafka_broker, FAULTLINE_NODE_EVENT_TOPIC=f"{topic}=orion")
    node_event = {
        "node": "gpu1",
        "at": "2026-11-20T03:41:50Z",
        "text": "NVRM: Xid (PCI:0000:b3:00): 79, GPU lost",
        "gpu": 3,
    }
    producer = Producer(running.config)
    message = Message(json.dumps(node_event).encode())
    producer.send(topic, [message, Message(b"{"), message])
    producer.close()
    job = json.loads(event("a")) | {"nodes": ["gpu1"], "logs": [{"tail": "NCCL watchdog timeout"}]}

    def events() -> int:
        with running.store.reading() as reading:
            return len(reading.node_events.page("orion", "gpu1").items)

    with running.start() as process:
        running.until(lambda: events() == 1)
        running.publish([json.dumps(job).encode()])
        running.until(lambda: running.stored() == 1)
        process.terminate()
        assert process.wait(60) == 0, running.log.read_text()
    with running.store.reading() as reading:
        [row] = reading.failures.page().items
        assert len(reading.dead_letters.page().items) == 1
        detail = reading.failures.get(row.id)
    assert detail.verdict is not None
    assert [line["kind"] for line in detail.verdict["context"]] == ["gpu_lost"]
    assert row.suspect_node == "gpu1"
    running.store.close()


def test_the_node_topic_must_be_another_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FAULTLINE_DATABASE_URL", "sqlite:///unused.sqlite3")
    monkeypatch.setenv("FAULTLINE_KAFKA_BOOTSTRAP_SERVERS", "127.0.0.1:1")
    monkeypatch.setenv("FAULTLINE_KAFKA_TOPICS", "jobs")
    monkeypatch.setenv("FAULTLINE_NODE_EVENT_TOPIC", "jobs=orion")
    assert main(["worker"]) == 2
    assert "FAULTLINE_NODE_EVENT_TOPIC: expected a topic outside FAULTLINE_KAFKA_TOPICS" in capsys.readouterr().err
