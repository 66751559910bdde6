"""The demo's stream: job completions that any reader of the topic could read, and no label among them."""

from datetime import UTC, datetime

import orjson

from service.clock import SystemClock
from service.contracts.event import JobCompletion
from service.demo.player import PARTITIONS, TOPIC, Player, at, stream
from service.formats.recognise import parse
from service.messaging.memory_source import MemoryBroker

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
LABELS = {"side", "cause", "category", "symptom", "retry", "labels", "provenance", "kind", "group"}


def test_every_job_is_a_sound_event_and_none_carries_a_label() -> None:
    jobs = stream()
    assert len(jobs) >= 3_000
    for job in jobs:
        event = parse(at(job, NOW))
        assert isinstance(event, JobCompletion)
        assert event.ended_at == NOW
        assert not LABELS & (event.model_extra or {}).keys()


def test_four_weeks_hold_good_jobs_and_failures_of_many_users() -> None:
    jobs = stream()
    failed = [job for job in jobs if job["status"] != "succeeded"]
    assert 0.1 < len(failed) / len(jobs) < 0.5
    assert len({job["user"] for job in failed}) > 5


def test_the_backlog_ends_now_and_lies_on_the_topic() -> None:
    broker = MemoryBroker({TOPIC: PARTITIONS})
    total = Player(broker, SystemClock()).backlog()
    values = [message.value for log in broker.logs.values() for message in log]
    assert len(values) == total == len(stream())
    ended = [datetime.fromisoformat(orjson.loads(value)["ended_at"]) for value in values if value]
    assert max(ended) <= datetime.now(UTC)
