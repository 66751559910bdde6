"""The common behaviour of record sources, tested with the in-memory source and with a real broker."""

import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from service.errors import Unavailable
from service.messaging.kafka.config import KafkaConfig
from service.messaging.record import Record, TopicPartition
from service.messaging.source import Committed, Source
from tests.service.messaging.memory_source import MemoryBroker, MemorySource

pytestmark = pytest.mark.xdist_group("kafka")  # one broker for all files of the group

PATIENCE_S = 120.0


@dataclass
class Harness:
    """One topic with three partitions, read as cluster "orion" by one group."""

    topic: str
    put: Callable[..., int]
    source: Callable[[str], Source]
    committed: Callable[[TopicPartition], int | None]
    kill: Callable[[Any], None]
    cleanup: list[Callable[[], None]] = field(default_factory=list)

    def place(self, partition: int) -> TopicPartition:
        return TopicPartition(self.topic, partition)

    def member(self, name: str = "a") -> Source:
        source = self.source(name)
        self.cleanup.append(source.close)
        return source

    def fill(self, partition: int, count: int, start: int = 0) -> None:
        for number in range(start, start + count):
            self.put(self.place(partition), f"{partition}-{number}".encode())


@pytest.fixture(params=["memory", pytest.param("kafka", marks=pytest.mark.lab)])
def harness(request: pytest.FixtureRequest) -> Iterator[Harness]:
    topic = f"jobs-{uuid.uuid4().hex[:8]}"
    made = _memory(topic) if request.param == "memory" else _kafka(topic, request.getfixturevalue("kafka_broker"))
    yield made
    for undo in reversed(made.cleanup):
        undo()


def _memory(topic: str) -> Harness:
    broker = MemoryBroker({topic: 3}, {topic: "orion"})
    return Harness(
        topic=topic,
        put=broker.put,
        source=lambda name: MemorySource(broker, name, [topic]),
        committed=broker.committed,
        kill=lambda _source: None,
    )


def _kafka(topic: str, broker: Any) -> Harness:
    from kafka import KafkaProducer, TopicPartition  # noqa: PLC0415 - only where the lab is there

    from service.messaging.kafka.connect import connected  # noqa: PLC0415 - as above
    from service.messaging.kafka.source import KafkaSource  # noqa: PLC0415 - as above

    broker.create_topic(topic, 3)
    config = KafkaConfig((broker.address,), (f"{topic}=orion",), group_id=f"group-{topic}")
    producer = connected(KafkaProducer, bootstrap_servers=broker.address)
    admin = broker.admin()

    def put(place: TopicPartition, value: bytes | None, key: bytes | None = None, headers: Sequence[Any] = ()) -> int:
        sent = producer.send(place.topic, value=value, key=key, headers=list(headers), partition=place.partition)
        offset: int = sent.get(timeout=120).offset
        return offset

    def committed(place: TopicPartition) -> int | None:
        found = admin.list_group_offsets({config.group_id: [TopicPartition(*place)]})[config.group_id]
        offset = found[TopicPartition(*place)].offset
        return None if offset < 0 else offset

    return Harness(
        topic=topic,
        put=put,
        source=lambda name: KafkaSource(config, member=name),
        committed=committed,
        kill=lambda source: source._drop(),  # like a killed process: it does not leave the group
        cleanup=[producer.close, admin.close],
    )


def take(source: Source, count: int, patience_s: float = PATIENCE_S) -> list[Record]:
    """Poll until `count` records have arrived."""
    out: list[Record] = []
    deadline = time.monotonic() + patience_s
    while len(out) < count and time.monotonic() < deadline:
        out += (found := source.poll(500, 0.2))
        if not found:
            time.sleep(0.01)  # the in-memory source does not wait
    return out


def values(records: Sequence[Record], partition: int | None = None) -> list[bytes | None]:
    return [one.value for one in records if partition is None or one.partition == partition]


def test_brings_every_record_once_in_order_within_its_partition(harness: Harness) -> None:
    for partition in range(3):
        harness.fill(partition, 20)
    source = harness.member()
    records = take(source, 60)
    for partition in range(3):
        assert values(records, partition) == [f"{partition}-{n}".encode() for n in range(20)]
        assert [one.offset for one in records if one.partition == partition] == list(range(20))
    assert take(source, 1, patience_s=0.6) == []


def test_hands_over_bytes_as_they_are(harness: Harness) -> None:
    place = harness.place(1)
    harness.put(place, b"\x00\xff not text", key=b"k\x00", headers=[("ce_id", b"\xfe"), ("ce_id", b"twice")])
    harness.put(place, None, key=b"tombstone")
    harness.put(place, b"", key=b"empty")
    first, second, third = take(harness.member(), 3)
    assert (first.value, first.key) == (b"\x00\xff not text", b"k\x00")
    assert list(first.headers) == [("ce_id", b"\xfe"), ("ce_id", b"twice")]
    assert (second.value, third.value) == (None, b"")
    assert first.cluster == "orion"
    assert first.place == f"{harness.topic}/1/0"


def test_poll_brings_no_more_than_asked_for(harness: Harness) -> None:
    for partition in range(3):
        harness.fill(partition, 10)
    source = harness.member()
    sizes: list[int] = []
    while sum(sizes) < 30:
        got = source.poll(7, 1.0)
        assert len(got) <= 7
        sizes.append(len(got))


def test_what_was_not_committed_is_read_again_and_what_was_is_not(harness: Harness) -> None:
    harness.fill(0, 10)
    harness.fill(1, 10)
    source = harness.member()
    take(source, 20)
    source.commit({harness.place(0): Committed(4)})
    assert harness.committed(harness.place(0)) == 4
    assert harness.committed(harness.place(1)) is None
    source.close()
    again = take(harness.member("b"), 16)
    assert values(again, 0) == [f"0-{n}".encode() for n in range(4, 10)]
    assert values(again, 1) == [f"1-{n}".encode() for n in range(10)]


def test_a_killed_member_is_back_with_its_partitions_in_a_moment(harness: Harness) -> None:
    harness.fill(0, 10)
    first = harness.source("static")
    take(first, 10)
    first.commit({harness.place(0): Committed(5)})
    harness.kill(first)
    started = time.monotonic()
    second = harness.member("static")
    assert values(take(second, 5)) == [f"0-{n}".encode() for n in range(5, 10)]
    took = time.monotonic() - started
    print(f"a killed member was back after {took:.2f} s (its session lasts 45 s)")
    assert took < 35


def test_a_paused_source_returns_nothing_and_continues_at_its_position(harness: Harness) -> None:
    harness.fill(2, 5)
    source = harness.member()
    assert len(take(source, 5)) == 5
    source.pause()
    harness.fill(2, 5, start=5)
    for _ in range(4):
        assert source.poll(500, 0.1) == []
    assert source.take_revoked() == frozenset()
    source.resume()
    assert values(take(source, 5)) == [f"2-{n}".encode() for n in range(5, 10)]


def test_paused_before_anything_was_read(harness: Harness) -> None:
    harness.fill(0, 3)
    source = harness.member()
    source.pause()
    for _ in range(5):
        assert source.poll(500, 0.2) == []
    source.resume()
    assert len(take(source, 3)) == 3


@contextmanager
def polled(members: Sequence[Source]) -> Iterator[None]:
    """Poll members in threads of their own, as processes do: a rebalance ends when all of them ask at one time."""
    end = threading.Event()

    def poll(member: Source) -> None:
        while not end.is_set():
            member.poll(500, 0.1)
            end.wait(0.01)  # the in-memory source does not wait

    threads = [threading.Thread(target=poll, args=(member,)) for member in members]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        end.set()
        for thread in threads:
            thread.join()


def commit(source: Source, offsets: Mapping[TopicPartition, int], *others: Source) -> None:
    """Commit as the consumer's loop does: a group accepts it after a rebalance, once all members have polled."""
    deadline = time.monotonic() + PATIENCE_S
    with polled(others):
        while True:
            try:
                return source.commit({place: Committed(offset) for place, offset in offsets.items()})
            except Unavailable:
                if time.monotonic() > deadline:
                    raise
                source.poll(500, 0.1)


def test_two_members_share_and_the_one_that_stays_takes_over(harness: Harness) -> None:
    one = harness.member("one")
    for partition in range(3):
        harness.fill(partition, 1)
    commit(one, {record.at: record.offset + 1 for record in take(one, 3)})  # it holds all partitions
    one.take_revoked()
    two = harness.member("two")
    for partition in range(3):
        harness.fill(partition, 5, start=1)
    deadline = time.monotonic() + PATIENCE_S
    seen: dict[str, list[Record]] = {"one": [], "two": []}
    while time.monotonic() < deadline and (not seen["two"] or len(seen["one"]) + len(seen["two"]) < 15):
        seen["one"] += one.poll(500, 0.1)
        seen["two"] += two.poll(500, 0.1)
    seen["one"] += one.poll(500, 0.1)
    assert one.take_revoked(), "the first member was not told that it gave partitions away"
    owned = {name: {record.partition for record in records} for name, records in seen.items()}
    assert owned["two"]
    assert {record.value for records in seen.values() for record in records} == {
        f"{partition}-{n}".encode() for partition in range(3) for n in range(1, 6)
    }
    for source, other, name in ((one, two, "one"), (two, one, "two")):
        commit(source, {record.at: record.offset + 1 for record in seen[name]}, other)
    two.close()
    for partition in range(3):
        harness.fill(partition, 1, start=6)
    wanted = {f"{partition}-6".encode() for partition in range(3)}
    deadline = time.monotonic() + PATIENCE_S
    while wanted and time.monotonic() < deadline:  # what a rebalance took before its commit comes again
        wanted -= {record.value for record in take(one, 1)}
    assert not wanted


def test_committing_what_was_taken_away_changes_nothing(harness: Harness) -> None:
    harness.fill(0, 3)
    source = harness.member()
    take(source, 3)
    source.commit({TopicPartition(harness.topic, 99): Committed(7), harness.place(0): Committed(2)})
    assert harness.committed(harness.place(0)) == 2


def test_the_note_of_a_killed_member_is_found_by_the_next_and_replaced_by_its_commit(harness: Harness) -> None:
    harness.fill(0, 3)
    first, place = harness.source("static"), harness.place(0)
    take(first, 3)
    assert first.committed(place) is None
    first.commit({place: Committed(0, "begun once")})
    harness.kill(first)
    second = harness.member("static")
    assert values(take(second, 3)) == [b"0-0", b"0-1", b"0-2"]
    assert second.committed(place) == Committed(0, "begun once")
    second.commit({place: Committed(3)})
    assert second.committed(place) == Committed(3, "")


def test_says_how_far_behind_it_is(harness: Harness) -> None:
    harness.fill(0, 10)
    harness.fill(1, 5)
    source = harness.member()
    take(source, 15)
    assert source.lag() == {harness.topic: 15}
    source.commit({harness.place(0): Committed(8)})
    assert source.lag() == {harness.topic: 7}
