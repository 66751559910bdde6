import gzip
import json
import uuid
from pathlib import Path

import pytest

from service.__main__ import main
from service.cli.exit_codes import SOME_LINES_BAD
from service.cli.processes.publish import key_of, pieces
from service.messaging.kafka.config import KafkaConfig
from service.messaging.kafka.source import KafkaSource
from tests.contracts.test_source import take
from tests.labs.kafka import Broker
from tests.service.messaging.fakes import Clock, event

pytestmark = pytest.mark.xdist_group("kafka")  # one broker for all files of the group


def test_the_key_keeps_a_jobs_attempts_together() -> None:
    assert key_of({"cluster": "orion", "job_id": "ns/Job/a"}) == b"orion/ns/Job/a"
    assert key_of({"jobid": 17, "cluster": "orion"}) == b"orion/17"
    assert key_of({"jobid": 17}) == b"17"
    assert key_of({"kind": "Pod"}) is None


def test_goes_no_faster_than_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"\n".join(event(f"j{number}") for number in range(100)))
    clock = Clock()
    bad: list[str] = []
    sent = [(clock.seconds, len(piece)) for piece in pieces([str(path)], 20.0, bad, clock)]
    assert sum(count for _, count in sent) == 100
    assert 4.5 <= clock.seconds <= 5.0
    for at, _ in sent:
        assert sum(count for when, count in sent if when <= at) <= at * 20 + 2


@pytest.mark.lab
def test_puts_every_object_on_the_topic_as_it_is_and_names_what_is_none(
    tmp_path: Path, kafka_broker: Broker, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    topic = f"jobs-{uuid.uuid4().hex[:8]}"
    monkeypatch.setenv("FAULTLINE_KAFKA_BOOTSTRAP_SERVERS", kafka_broker.address)
    monkeypatch.setenv("FAULTLINE_KAFKA_TOPICS", f"{topic}=orion")
    plain, zipped = tmp_path / "a.jsonl", tmp_path / "b.gz"
    slurm = json.dumps({"jobid": 17, "state": "FAILED", "odd": 1.0}).encode()
    plain.write_bytes(b"\n".join([event("a"), b"[1]", b"{", slurm]))
    zipped.write_bytes(gzip.compress(b"".join(event(f"z{number}") + b"\n" for number in range(600))))
    assert main(["publish", str(plain), str(zipped)]) == SOME_LINES_BAD
    output = capsys.readouterr()
    assert output.out == f"published 602 events on {topic}\n"
    assert f"{plain}:2: expected a JSON object" in output.err
    assert f"{plain}:3: expected a JSON object" in output.err
    source = KafkaSource(KafkaConfig((kafka_broker.address,), (topic,), group_id=topic))
    records = take(source, 602)
    source.close()
    assert {one.value for one in records} >= {event("a"), slurm, event("z0"), event("z599")}
    assert len(records) == 602


def test_without_settings_it_says_which_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("FAULTLINE_KAFKA_BOOTSTRAP_SERVERS", raising=False)
    events = tmp_path / "events.jsonl"
    events.write_text("{}\n")
    assert main(["publish", str(events)]) == 2
    assert "FAULTLINE_KAFKA_BOOTSTRAP_SERVERS" in capsys.readouterr().err
