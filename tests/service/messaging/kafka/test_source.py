"""What only a real broker can show; what every source must do is in tests/contracts/test_source.py."""

import random
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Self

import pytest
from kafka import KafkaProducer
from kafka.errors import UnsupportedCodecError
from kafka.record.default_records import DefaultRecordBatch

from service.clock import SystemClock
from service.contracts.event import MAX_EVENT_BYTES
from service.errors import ConfigurationError, Unavailable
from service.formats import recognise
from service.messaging.consumer import Consumer
from service.messaging.dead_letters import DeadLetterSender
from service.messaging.kafka.config import KafkaConfig
from service.messaging.kafka.connect import connected
from service.messaging.kafka.consumer_lag import LagReader
from service.messaging.kafka.producer import Producer
from service.messaging.kafka.source import KafkaSource, WaitingConsumer
from service.messaging.record import Message
from service.messaging.retrying_handler import StoreBatch
from service.messaging.source import Committed
from service.telemetry import Telemetry
from tests.contracts.test_source import take
from tests.labs.kafka import PASSWORD, USER, Broker
from tests.labs.ports import free_port
from tests.service.messaging.fakes import Database, event
from tests.service.messaging.kafka.test_bounded_codecs import NoUtf8

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("kafka")]  # one broker for all files of the group


def config_for(broker: Broker, **changes: Any) -> KafkaConfig:
    name = uuid.uuid4().hex[:8]
    settings: dict[str, Any] = {"group_id": f"g-{name}", "dead_letter_topic": f"dead-{name}"}
    return KafkaConfig((broker.address,), (f"jobs-{name}=orion",), **{**settings, **changes})


@pytest.fixture
def config(kafka_broker: Broker) -> KafkaConfig:
    return config_for(kafka_broker)


class ConsumerThread:
    """A consumer on a real broker in a thread; `handle` stores what it reads, `error` is what ended it."""

    def __init__(
        self, config: KafkaConfig, handle: StoreBatch, member: str | None = "m", *, delivery_s: float = 20.0
    ) -> None:
        self.producer = Producer(config, delivery_s=delivery_s)
        self.error: BaseException | None = None
        self._stop = threading.Event()
        self._consumer = Consumer(
            KafkaSource(config, member=member),
            recognise.parse,
            handle,
            DeadLetterSender(self.producer, config.dead_letter_topic),
            clock=SystemClock(),
            telemetry=Telemetry(),
        )
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop.set()
        self._thread.join(60)
        assert not self._thread.is_alive()
        self.producer.close()

    def _run(self) -> None:
        try:
            self._consumer.run(self._stop)
        except Exception as error:  # noqa: BLE001 - the test looks at it
            self.error = error


class Running(ConsumerThread):
    """A consumer on a real broker in a thread, storing into a fake database."""

    def __init__(self, config: KafkaConfig, member: str | None = "m", *, delivery_s: float = 20.0) -> None:
        self.config = config
        self.topic = next(iter(config.clusters))
        self.database = Database()
        super().__init__(config, self.database, member, delivery_s=delivery_s)

    def until(self, jobs: set[str], patience_s: float = 180.0) -> None:
        deadline = time.monotonic() + patience_s
        while not jobs <= self.database.jobs():
            assert time.monotonic() < deadline, f"missing: {sorted(jobs - self.database.jobs())[:5]}; {self.error}"
            assert self.error is None, self.error
            time.sleep(0.05)


@pytest.fixture
def raw(kafka_broker: Broker) -> Iterator[KafkaProducer]:
    made = connected(KafkaProducer, bootstrap_servers=kafka_broker.address, max_request_size=300_000_000, linger_ms=50)
    yield made
    made.close()


def test_a_join_that_ends_between_two_polls_is_finished(config: KafkaConfig, raw: KafkaProducer) -> None:
    made: list[WaitingConsumer] = []

    def client(**settings: Any) -> WaitingConsumer:
        made.append(WaitingConsumer(**settings))
        return made[-1]

    source = KafkaSource(config, member="m", make=client)
    topic = next(iter(config.clusters))
    raw.send(topic, b"first", partition=0).get(60)
    try:
        take(source, 1)
        coordinator = made[0]._coordinator
        made[0]._subscription.assign_from_subscribed([])  # as after a join that did not know the topic yet
        coordinator._assignment_snapshot = {}
        source.poll(1, 0)
        deadline = time.monotonic() + 60
        while not coordinator._join_task.is_done and time.monotonic() < deadline:
            time.sleep(0.05)
        raw.send(topic, b"second", partition=0).get(60)
        assert [one.value for one in take(source, 2, patience_s=60)] == [b"first", b"second"]
    finally:
        source.close()


def test_bad_records_become_dead_letters_and_their_neighbours_are_stored(
    config: KafkaConfig, raw: KafkaProducer
) -> None:
    with Running(config) as running:
        bad = [b"{", b'{"schema": "job-completion/9"}', b"\x00" * 100, b"\xff\xfe{}", b"[]", b"7", b"", b"{" * 100_000]
        for number, value in enumerate(bad):
            raw.send(running.topic, event(f"a{number}"), partition=0)
            raw.send(running.topic, value, partition=0)
        raw.send(running.topic, None, key=b"tombstone", partition=0)
        raw.send(running.topic, event("named"), partition=0, headers=[(NoUtf8(), b"1")])
        raw.send(running.topic, event("last"), partition=0, headers=[("content-type", b"\xff\x00")])
        raw.flush()
        running.until({f"a{number}" for number in range(len(bad))} | {"named", "last"})
        letters = take(KafkaSource(KafkaConfig(config.bootstrap_servers, (config.dead_letter_topic,))), len(bad))
    assert sorted(one.value or b"" for one in letters) == sorted(bad)
    assert running.database.places() == {dict(one.headers)["faultline-place"].decode() for one in letters}


def test_a_record_of_100_mb_is_a_dead_letter_and_wedges_nothing(
    config: KafkaConfig, raw: KafkaProducer, kafka_broker: Broker
) -> None:
    topic = next(iter(config.clusters))
    kafka_broker.create_topic(topic, 1, max_message_bytes="200000000")
    raw.send(topic, event("before")).get(120)
    huge = event("huge", message=random.Random(7).randbytes(50_000_000).hex())  # hardly to be compressed
    raw.send(topic, huge).get(60)
    raw.send(topic, event("large", message="y" * (MAX_EVENT_BYTES - 1_000))).get(60)
    raw.send(topic, event("after")).get(120)
    with Running(config) as running:
        running.until({"before", "large", "after"})
        source = KafkaSource(KafkaConfig(config.bootstrap_servers, (config.dead_letter_topic,), group_id=topic))
        [letter] = take(source, 1)
        source.close()
    result = dict(letter.headers)
    assert huge.startswith(letter.value or b"-")
    assert result["faultline-cut"].endswith(b"of %d bytes, 0 headers left out" % len(huge))
    assert result["faultline-place"] == f"{topic}/0/1".encode()
    assert running.database.jobs() == {"before", "large", "after"}


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_reads_every_codec(config: KafkaConfig, kafka_broker: Broker, codec: str) -> None:
    topic = next(iter(config.clusters))
    producer = connected(KafkaProducer, bootstrap_servers=kafka_broker.address, compression_type=codec)
    producer.send(topic, b"x" * 10_000).get(120)
    producer.close()
    source = KafkaSource(config)
    assert [one.value for one in take(source, 1)] == [b"x" * 10_000]
    source.close()


def test_a_codec_that_is_not_installed_ends_it_with_the_reason(
    config: KafkaConfig, raw: KafkaProducer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(_batch: object) -> None:
        raise UnsupportedCodecError("Libraries for zstd compression codec not found")

    monkeypatch.setattr(DefaultRecordBatch, "_maybe_uncompress", missing)
    raw.send(next(iter(config.clusters)), event("a")).get(120)
    source = KafkaSource(config)
    with pytest.raises(ConfigurationError, match="zstd"):
        take(source, 1)
    source.close()


def test_an_error_within_a_batch_is_passed_once_it_is_removed(
    config: KafkaConfig, raw: KafkaProducer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asked again after an error, the client's iterator would spin for ever; a new one is made instead."""
    genuine, reads = DefaultRecordBatch._read_msg, [0]

    def failing(self: Any, *args: Any, **kwargs: Any) -> Any:
        reads[0] += 1
        if reads[0] == 3:
            raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad header")
        return genuine(self, *args, **kwargs)

    topic = next(iter(config.clusters))
    for number in range(5):
        raw.send(topic, event(f"j{number}"), partition=0)
    raw.flush()
    monkeypatch.setattr(DefaultRecordBatch, "_read_msg", failing)
    source = KafkaSource(config)
    got: list[bytes | None] = []
    failures = 0
    deadline = time.monotonic() + 180
    while len(got) < 5 and time.monotonic() < deadline:
        try:
            got += [one.value for one in source.poll(500, 0.5) if one.value not in got]
        except Unavailable:
            failures += 1
    source.close()
    assert failures == 1
    assert got == [event(f"j{number}") for number in range(5)]


def test_a_record_that_can_never_be_decoded_ends_it_with_its_place(
    config: KafkaConfig, raw: KafkaProducer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: Any, **__: Any) -> None:
        raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad header")

    topic = next(iter(config.clusters))
    raw.send(topic, event("a"), partition=1).get(120)
    monkeypatch.setattr(DefaultRecordBatch, "_read_msg", failing)
    with Running(config) as running:
        deadline = time.monotonic() + 180
        while running.error is None and time.monotonic() < deadline:
            time.sleep(0.05)
    assert isinstance(running.error, ConfigurationError)
    assert "bad header" in running.error.detail
    assert f"{topic}/1/0" in running.error.detail


def test_waits_for_the_database_longer_than_any_timeout_of_the_group(kafka_broker: Broker, raw: KafkaProducer) -> None:
    config = config_for(kafka_broker, session_timeout_ms=9_000, max_poll_interval_ms=9_000)
    with Running(config) as running:
        raw.send(running.topic, event("first")).get(120)
        running.until({"first"})
        admin = kafka_broker.admin()
        before = admin.describe_groups([config.group_id])[config.group_id]
        down_until = time.monotonic() + 14

        def down() -> None:
            if time.monotonic() < down_until:
                raise Unavailable("the database does not answer")

        running.database.before = down
        for number in range(50):
            raw.send(running.topic, event(f"j{number}"))
        raw.flush()
        running.until({f"j{number}" for number in range(50)})
        after = admin.describe_groups([config.group_id])[config.group_id]
        admin.close()
    assert [one["member_id"] for one in after["members"]] == [one["member_id"] for one in before["members"]]


def test_a_broker_that_is_killed_while_it_reads_costs_nothing(own_kafka_broker: Broker) -> None:
    config = config_for(own_kafka_broker)
    producer = Producer(config, delivery_s=60.0)
    topic = next(iter(config.clusters))
    with Running(config) as running:
        producer.send(topic, [Message(event(f"a{number}")) for number in range(300)])
        running.until({f"a{number}" for number in range(100)})
        impatient = Producer(config, delivery_s=1.0)
        before = threading.active_count()
        impatient.send(topic, [Message(event("z"))])
        own_kafka_broker.kill()
        with pytest.raises(Unavailable):
            impatient.send(topic, [Message(event("z"))])
        assert threading.active_count() <= before
        own_kafka_broker.start()
        producer.send(topic, [Message(event(f"b{number}")) for number in range(300)])
        running.until({f"{kind}{number}" for kind in "ab" for number in range(300)})
    producer.close()
    lag = LagReader(config)
    assert lag.read() == {topic: 0}
    lag.close()


def test_without_a_broker_it_says_so_and_leaves_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.messaging.kafka.source.BOOTSTRAP_MS", 500)
    before = threading.active_count()
    source = KafkaSource(KafkaConfig((f"127.0.0.1:{free_port()}",), ("jobs",)))
    with pytest.raises(Unavailable, match="could not connect"):
        source.poll(1, 0.1)
    source.close()
    assert threading.active_count() <= before


def test_a_broker_that_does_not_answer_costs_no_processor_time(config: KafkaConfig, kafka_broker: Broker) -> None:
    """The client's own loop occupies a core from the first overdue heartbeat until the request times out."""
    source = KafkaSource(replace(config, session_timeout_ms=3_000))  # a heartbeat every second
    poll_for(source, 3.0)
    with kafka_broker.frozen():
        poll_for(source, 1.5)
        used = time.process_time()
        poll_for(source, 2.0)
        assert time.process_time() - used < 0.5
    source.close()


def poll_for(source: KafkaSource, seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        source.poll(10, 0.25)


def guarded(broker: Broker, password: str) -> KafkaConfig:
    name = uuid.uuid4().hex[:8]
    return KafkaConfig(
        (broker.guarded_address,),
        (f"jobs-{name}=orion",),
        group_id=f"g-{name}",
        dead_letter_topic=f"dead-{name}",
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN",
        sasl_username=USER,
        sasl_password=password,
    )


@pytest.mark.parametrize("encrypted", [False, True])
def test_reads_writes_and_leaves_a_broker_that_asks_for_a_password(kafka_broker: Broker, *, encrypted: bool) -> None:
    config = guarded(kafka_broker, PASSWORD)
    if encrypted:
        config = replace(
            config,
            bootstrap_servers=(kafka_broker.encrypted_address,),
            security_protocol="SASL_SSL",
            ssl_cafile=kafka_broker.certificate,
        )
    with Running(config) as running:
        running.producer.send(running.topic, [Message(event("a")), Message(b"{")])
        running.until({"a"})
        lag = LagReader(config)
        deadline = time.monotonic() + 120
        while (left := lag.read()) != {running.topic: 0}:
            assert time.monotonic() < deadline, f"not committed: {left}"
            time.sleep(0.1)
        lag.close()
    assert running.error is None


def test_a_wrong_password_is_indicated_without_details(kafka_broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """The broker only hangs up, so that it may be an outage as well; a rebuilt client tries again."""
    monkeypatch.setattr("service.messaging.kafka.source.BOOTSTRAP_MS", 1_000)
    source = KafkaSource(guarded(kafka_broker, "wrong-but-long"))
    with pytest.raises(Unavailable, match="if the broker is up, check that the port uses SASL_PLAINTEXT") as refused:
        source.poll(1, 0.1)
    assert "wrong-but-long" not in refused.value.detail
    source.close()


def test_the_older_of_two_with_one_name_ends(config: KafkaConfig, raw: KafkaProducer) -> None:
    topic = next(iter(config.clusters))
    with Running(config, "twin") as older:
        raw.send(topic, event("a")).get(120)
        older.until({"a"})
        with Running(config, "twin") as newer:
            deadline = time.monotonic() + 120  # until the newer one has joined, the older one still gets events
            while older.error is None and time.monotonic() < deadline:
                raw.send(topic, event(uuid.uuid4().hex)).get(120)
                time.sleep(0.3)
            assert isinstance(older.error, ConfigurationError)
            raw.send(topic, event("c")).get(120)
            newer.until({"c"})
            assert newer.error is None


def test_lag_from_outside_is_what_is_not_yet_committed(config: KafkaConfig, raw: KafkaProducer) -> None:
    topic = next(iter(config.clusters))
    lag = LagReader(config)
    assert lag.read() == {topic: 0}
    for number in range(30):
        raw.send(topic, event(f"j{number}"), partition=number % 3)
    raw.flush()
    assert lag.read() == {topic: 30}
    source = KafkaSource(config)
    records = take(source, 30)
    source.commit({records[0].at: Committed(4)})
    assert lag.read() == source.lag() == {topic: 26}
    source.close()
    lag.close()
