"""Whatever mix of bad records, failures, rebalances and restarts: committed means done, and everything is done once."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from hypothesis import example, given, settings
from hypothesis import strategies as st

from service.errors import Unavailable
from service.messaging.batching import next_offsets, split_by_size
from service.messaging.consumer import Consumer, ConsumerLimits
from service.messaging.crash_counts import ALONE
from service.messaging.record import Record, TopicPartition
from service.messaging.source import Committed
from service.telemetry import Telemetry
from tests.service.messaging.fakes import Clock, Database, DeadLetterTopic, StopWhen, event, parse
from tests.service.messaging.memory_source import MemoryBroker, MemorySource

PARTITIONS = 3

KINDS = st.sampled_from(["good", "good", "good", "unreadable", "poison", "skip", "tombstone", "again"])
RECORDS = st.lists(st.tuples(st.integers(0, PARTITIONS - 1), KINDS), max_size=60)
TROUBLES = st.lists(
    st.sampled_from(["fine", "fine", "database", "rebalance", "broker", "killed", "stopped", "commit lost"]),
    max_size=25,
)


class _Killed(BaseException):
    """As by -9: nothing is cleaned up."""


@dataclass
class _World:
    """One topic and database that outlive the consumers; `troubles` are met one a batch."""

    troubles: list[str]
    size: int
    clock: Clock = field(default_factory=Clock)
    broker: MemoryBroker = field(default_factory=lambda: MemoryBroker({"jobs": PARTITIONS}))
    database: Database = field(default_factory=Database)
    topic: DeadLetterTopic = field(default_factory=DeadLetterTopic)
    lives: int = 0
    stop: bool = False

    def meet(self) -> None:
        trouble = self.troubles.pop() if self.troubles else "fine"
        if trouble == "database":
            raise Unavailable("down")
        if trouble == "killed":
            raise _Killed
        if trouble == "rebalance":
            visitor = MemorySource(self.broker, "visitor", ["jobs"])
            visitor.poll(1, 0.0)
            visitor.close()
        elif trouble == "broker":
            self.topic.down += 1
        elif trouble == "stopped":
            self.stop = True

    def live(self) -> None:
        """One process of the worker, until it ends one way or another."""
        self.lives += 1
        self.stop = False
        source = MemorySource(self.broker, "worker", ["jobs"])
        commit = source.commit

        def checked(offsets: Mapping[TopicPartition, Committed]) -> None:
            if self.troubles and self.troubles[-1] == "commit lost":
                self.troubles.pop()
                raise Unavailable("no answer")
            commit(offsets)
            self.check()

        source.commit = checked  # type: ignore[method-assign]
        consumer = Consumer(
            source,
            parse,
            self.database,
            self.topic,
            clock=self.clock,
            telemetry=Telemetry(),
            limits=ConsumerLimits(events=self.size),
        )
        try:
            consumer.run(StopWhen(self.clock, lambda: self.stop or self.done(), patience=10_000))
        except _Killed:
            return

    def done(self) -> bool:
        return all((self.broker.committed(place) or 0) == len(log) for place, log in self.broker.logs.items())

    def given_up(self) -> set[str]:
        """Records at which processes were killed so often that they are dead letters."""
        return {letter.place for letter in self.database.letters.values() if "were killed" in letter.reason}

    def check(self) -> None:
        """Everything below a committed offset was finished: stored, kept as a dead letter, or passed over."""
        for place, log in self.broker.logs.items():
            for offset, message in enumerate(log[: self.broker.committed(place) or 0]):
                where = f"{place.topic}/{place.partition}/{offset}"
                value = message.value
                if value is None or b"skip" in value:
                    continue
                if b"poison" in value or value == b"{":
                    assert where in self.database.places(), where
                    assert where in self.topic.places(), where
                elif where not in self.given_up():
                    assert any(f'"{job}"'.encode() in value for job in self.database.jobs()), where


@settings(max_examples=150, deadline=None)
@given(records=RECORDS, troubles=TROUBLES, size=st.integers(1, 20))
@example(records=[(0, "good")], troubles=["rebalance"] * ALONE, size=1)
def test_committed_means_done_and_everything_is_done(
    records: list[tuple[int, str]], troubles: list[str], size: int
) -> None:
    world = _World(troubles, size)
    world.database.before = world.meet
    world.database.poison = lambda stored: stored.job_id.startswith("poison")
    # One whose partition is revoked while it handles a record looks like one that was killed.
    killed, revoked = troubles.count("killed"), troubles.count("rebalance")
    good: list[str] = []
    for number, (partition, kind) in enumerate(records):
        place = TopicPartition("jobs", partition)
        if kind == "good":
            good.append(f"job{number}")
        elif kind == "again" and not good:
            continue
        world.broker.put(
            place,
            {
                "good": event(f"job{number}"),
                "again": event(good[-1]) if good else None,
                "poison": event(f"poison{number}"),
                "unreadable": b"{",
                "skip": b'{"skip": true}',
                "tombstone": None,
            }[kind],
        )
    while not world.done():
        world.live()
        assert world.lives < 100
    assert len(world.given_up()) <= (killed + revoked) // ALONE
    if not killed or not world.given_up():
        assert world.database.jobs() == set(good)
    assert all(batch <= size for batch in world.database.batches)


PLACED = st.lists(st.tuples(st.integers(0, 2), st.binary(max_size=40)), max_size=80)


@given(PLACED, st.integers(1, 200))
def test_pieces_are_the_records_in_order_and_bounded(placed: list[tuple[int, bytes]], most: int) -> None:
    records = [Record(value, (), "t", partition, offset, "c") for offset, (partition, value) in enumerate(placed)]
    pieces = list(split_by_size(records, most))
    assert [record for piece in pieces for record in piece] == records
    assert all(len(piece) == 1 or sum(record.size for record in piece) <= most for piece in pieces)


@given(st.lists(st.integers(0, 2), max_size=50), st.data())
def test_next_offsets_lie_right_behind_what_is_finished(partitions: list[int], data: st.DataObject) -> None:
    ends: dict[int, int] = {}
    records = []
    for partition in partitions:
        offset = ends.get(partition, 0) + data.draw(st.integers(0, 3))  # compaction leaves gaps
        ends[partition] = offset + 1
        records.append(Record(b"", (), "t", partition, offset, "c"))
    finished = data.draw(st.integers(0, len(records)))
    ahead = next_offsets(records[:finished])
    for record in records[:finished]:
        assert record.offset < ahead[record.at]
    for record in records[finished:]:
        assert record.offset >= ahead.get(record.at, 0)
