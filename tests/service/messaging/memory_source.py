"""An in-memory broker with Kafka's semantics of membership, commit and replay."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from service.errors import ConfigurationError, Unavailable
from service.messaging.record import Headers, Message, Record, TopicPartition
from service.messaging.source import Committed


@dataclass
class _Group:
    """Members, their partitions, and committed offsets; `generation` grows with every rebalance."""

    members: list[str] = field(default_factory=list)
    owners: dict[TopicPartition, str] = field(default_factory=dict)
    committed: dict[TopicPartition, Committed] = field(default_factory=dict)
    holders: dict[str, "MemorySource"] = field(default_factory=dict)
    generation: int = 0


class MemoryBroker:
    """Holds topics and one group. While `up` is False, nothing answers.

    Args:
        topics: {topic: number of partitions}.
        clusters: {topic: cluster}; a topic without an entry is its own cluster name.
        largest: largest value in bytes that `send` accepts.
    """

    def __init__(
        self, topics: Mapping[str, int], clusters: Mapping[str, str] | None = None, largest: int = 1_000_000
    ) -> None:
        self.up = True
        self.clusters = dict(clusters or {})
        self.largest = largest
        self.group = _Group()
        self.logs: dict[TopicPartition, list[Message]] = {
            TopicPartition(topic, number): [] for topic, count in topics.items() for number in range(count)
        }

    def put(self, place: TopicPartition, value: bytes | None, key: bytes | None = None, headers: Headers = ()) -> int:
        """Append one message and return its offset."""
        self.logs[place].append(Message(value, key, headers))
        return len(self.logs[place]) - 1

    def committed(self, place: TopicPartition) -> int | None:
        """Return the committed offset of a partition, None before the first commit."""
        found = self.group.committed.get(place)
        return None if found is None else found.offset

    def join(self, name: str, source: "MemorySource") -> None:
        """Add a member; one with a known name takes over its partitions without a rebalance."""
        group = self.group
        known = name in group.members
        group.holders[name] = source
        if not known:
            group.members.append(name)
            self._rebalance()

    def leave(self, name: str) -> None:
        """Remove a member."""
        if name in self.group.members:
            self.group.members.remove(name)
            del self.group.holders[name]
            self._rebalance()

    def check(self) -> None:
        """Raise Unavailable if the broker is down."""
        if not self.up:
            raise Unavailable("the broker does not answer")

    def _rebalance(self) -> None:
        group = self.group
        group.generation += 1
        group.owners = {
            place: group.members[number % len(group.members)]
            for number, place in enumerate(sorted(self.logs))
            if group.members
        }


class MemorySource:
    """A member of the group of a MemoryBroker (see `service.messaging.source.Source`)."""

    def __init__(self, broker: MemoryBroker, member: str, topics: Sequence[str]) -> None:
        self._broker = broker
        self._member = member
        self._topics = frozenset(topics)
        self._positions: dict[TopicPartition, int] = {}
        self._revoked: set[TopicPartition] = set()
        self._generation: int | None = None
        self._paused = False
        self._turn = 0

    def poll(self, max_records: int, timeout_s: float) -> list[Record]:
        """See `Source.poll`; never waits."""
        del timeout_s
        try:
            self._broker.check()
        except Unavailable:
            self._forget()
            raise
        self._catch_up()
        out: list[Record] = []
        if self._paused:
            return out
        places = sorted(self._positions)
        for place in places[self._turn :] + places[: self._turn]:
            start = self._positions[place]
            found = self._broker.logs[place][start : start + max_records - len(out)]
            self._positions[place] += len(found)
            cluster = self._broker.clusters.get(place.topic, place.topic)
            out.extend(
                Record(one.value, tuple(one.headers), place.topic, place.partition, start + number, cluster, one.key)
                for number, one in enumerate(found)
            )
        self._turn = (self._turn + 1) % max(1, len(places))
        return out

    def commit(self, offsets: Mapping[TopicPartition, Committed]) -> None:
        """See `Source.commit`."""
        self._broker.check()
        self._check_name()
        if self._generation != self._broker.group.generation:
            raise Unavailable("the group is rebalancing")
        for place, offset in offsets.items():
            if place in self._positions:
                self._broker.group.committed[place] = offset

    def committed(self, partition: TopicPartition) -> Committed | None:
        """See `Source.committed`."""
        self._broker.check()
        return self._broker.group.committed.get(partition)

    def take_revoked(self) -> frozenset[TopicPartition]:
        """See `Source.take_revoked`."""
        taken = frozenset(self._revoked)
        self._revoked.clear()
        return taken

    def pause(self) -> None:
        """See `Source.pause`."""
        self._paused = True

    def resume(self) -> None:
        """See `Source.resume`."""
        self._paused = False

    def lag(self) -> Mapping[str, int]:
        """See `Source.lag`."""
        self._broker.check()
        out = dict.fromkeys(self._topics if self._positions else (), 0)
        for place in self._positions:
            out[place.topic] += len(self._broker.logs[place]) - (self._broker.committed(place) or 0)
        return out

    def close(self) -> None:
        """See `Source.close`."""
        if self._broker.group.holders.get(self._member) is self:
            self._broker.leave(self._member)
        self._forget()

    def _catch_up(self) -> None:
        """Join, or take part in a rebalance: everything is given back, then what is ours taken up at its offsets."""
        group = self._broker.group
        if self._generation is None:
            self._broker.join(self._member, self)
        self._check_name()
        if self._generation == group.generation:
            return
        self._forget()
        self._generation = group.generation
        self._positions = {
            place: self._broker.committed(place) or 0
            for place, owner in group.owners.items()
            if owner == self._member and place.topic in self._topics
        }

    def _check_name(self) -> None:
        if self._broker.group.holders.get(self._member, self) is not self:
            raise ConfigurationError(f"another worker has taken over the name {self._member}")

    def _forget(self) -> None:
        self._revoked |= set(self._positions)
        self._positions = {}
        self._generation = None
