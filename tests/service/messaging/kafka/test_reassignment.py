"""A partition that goes to another worker while a batch is in work: nothing is lost, and nothing is stored twice."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from sqlalchemy import text

from service.clock import SystemClock
from service.contracts.event import JobCompletion
from service.db.session import Store
from service.dead_letters.records import DeadLetter
from service.logs.fetch import LogFetcher
from service.messaging.batch_result import BatchOutcome
from service.messaging.kafka.config import KafkaConfig
from service.messaging.kafka.consumer_lag import LagReader
from service.messaging.kafka.producer import Producer
from service.messaging.kafka.source import KafkaSource
from service.messaging.record import Message
from service.pipeline.diagnosis_tools import DiagnosisTools
from service.recommend import policy
from service.telemetry import Telemetry
from tests.contracts.test_source import take
from tests.labs.kafka import Broker
from tests.service.databases import engine_of
from tests.service.messaging.fakes import event
from tests.service.messaging.kafka.test_source import ConsumerThread, config_for
from tests.service.pipeline.diagnosis import diagnose_with
from tests.service.web.world import ByWord

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("kafka")]

EVENTS, PATIENCE_S = 40, 120.0
UNREADABLE = (b"{", b"[")


@pytest.fixture
def dialect() -> str:
    """Two workers need PostgreSQL."""
    return "postgresql"


class Worker(ConsumerThread):
    """A consumer on a real broker and a real database; `before` is called with each batch before it is stored."""

    def __init__(self, config: KafkaConfig, store: Store, name: str, before: Callable[[], None]) -> None:
        tools = DiagnosisTools(store, LogFetcher(()), ByWord(), policy.built_in(), SystemClock(), Telemetry())
        diagnose = diagnose_with(tools)

        def handle(events: Sequence[JobCompletion], dead: Sequence[DeadLetter]) -> BatchOutcome:
            before()
            return diagnose(events, dead)

        super().__init__(config, handle, name)


class Turns:
    """Lets the first batch of the slow worker wait until a condition holds; counts the batches of both."""

    def __init__(self) -> None:
        self.slow_has_it, self.go_on = threading.Event(), threading.Event()
        self.fast = 0

    def slow(self) -> None:
        self.slow_has_it.set()
        assert self.go_on.wait(PATIENCE_S)

    def both_at_once(self) -> None:
        """The other worker has the same records in work: both go on at the same moment."""
        self.fast += 1
        self.go_on.set()

    def later(self) -> None:
        self.fast += 1


def until(done: Callable[[], bool], what: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not done():
        assert time.monotonic() < deadline, what()
        time.sleep(0.1)


def stored(store: Store) -> dict[str, int]:
    """What is stored, and of how many different jobs or places."""
    counts = {
        "jobs": "SELECT count(*), count(DISTINCT job_id) FROM jobs",
        "failures": "SELECT count(*), count(DISTINCT id) FROM failures WHERE version = 1",
        "messages": "SELECT count(*), count(DISTINCT key) FROM outbox WHERE type LIKE 'failure.%'",
        "letters": "SELECT count(*), count(DISTINCT place) FROM dead_letters",
    }
    with engine_of(store).connect() as connection:
        found = {name: connection.execute(text(statement)).one() for name, statement in counts.items()}
    assert {name: row[0] for name, row in found.items()} == {name: row[1] for name, row in found.items()}
    return {name: int(row[0]) for name, row in found.items()}


def sent_letters(config: KafkaConfig) -> set[bytes | None]:
    """The records on the topic of dead letters; a worker that was counted out may have sent one that another sent."""
    source = KafkaSource(KafkaConfig(config.bootstrap_servers, (config.dead_letter_topic,), group_id="reads-letters"))
    try:
        found = take(source, len(UNREADABLE))
        more = source.poll(100, 1.0)
    finally:
        source.close()
    return {one.value for one in (*found, *more)}


def publish(config: KafkaConfig, first: int, more: Sequence[bytes] = ()) -> None:
    producer = Producer(config)
    values = [*(event(f"j{number}") for number in range(first, first + EVENTS)), *more]
    producer.send(next(iter(config.clusters)), [Message(one, one[:60]) for one in values])
    producer.close()


def assigned(group: Mapping[str, Any]) -> list[str]:
    """The members that read partitions, once no change is under way."""
    members = group["members"] if group["group_state"] == "Stable" else []
    return sorted(one["group_instance_id"] for one in members if one["member_assignment"])


@pytest.mark.parametrize("counted_out", [True, False])
def test_a_batch_in_work_while_its_partitions_go_to_another_worker(
    kafka_broker: Broker, open_store: Callable[[], Store], *, counted_out: bool
) -> None:
    """Counted out: the first worker was slower than the group allows, and both store the same batch at once."""
    config = config_for(kafka_broker, session_timeout_ms=3_000, max_poll_interval_ms=3_000 if counted_out else 60_000)
    topic = kafka_broker.create_topic(next(iter(config.clusters)), 3)
    publish(config, 0, UNREADABLE)
    turns, lag, admin = Turns(), LagReader(config), kafka_broker.admin()

    def group() -> dict[str, Any]:
        return dict(admin.describe_groups([config.group_id])[config.group_id])

    slow = Worker(config, open_store(), "slow", turns.slow)
    fast = Worker(config, open_store(), "fast", turns.both_at_once if counted_out else turns.later)
    with slow:
        assert turns.slow_has_it.wait(PATIENCE_S)
        with fast:
            if not counted_out:
                until(lambda: group()["group_state"] == "PreparingRebalance", group)
                turns.go_on.set()
            until(turns.go_on.is_set, lambda: (slow.error, fast.error))
            until(lambda: assigned(group()) == ["fast", "slow"], group)
            publish(config, EVENTS)
            until(lambda: lag.read() == {topic: 0}, lambda: (slow.error, fast.error))
    assert (slow.error, fast.error) == (None, None)
    assert turns.fast > 0
    assert lag.read() == {topic: 0}, "the slow worker set no offset back"
    lag.close()
    admin.close()
    jobs = 2 * EVENTS
    assert stored(open_store()) == {"jobs": jobs, "failures": jobs, "messages": jobs, "letters": len(UNREADABLE)}
    assert sent_letters(config) == set(UNREADABLE)
