"""What a topic holds: records come in, messages go out; bytes all the way, read by nobody here."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

Headers = Sequence[tuple[str, bytes]]


class TopicPartition(NamedTuple):
    """One partition of one topic."""

    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class Record:
    """One record as it lay on its topic. `value` None is a deletion marker.

    `cluster` names the cluster of events that carry none (FAULTLINE_KAFKA_TOPICS, else the topic's name).
    """

    value: bytes | None
    headers: Headers
    topic: str
    partition: int
    offset: int
    cluster: str
    key: bytes | None = None

    @property
    def at(self) -> TopicPartition:
        """The partition it lay in."""
        return TopicPartition(self.topic, self.partition)

    @property
    def place(self) -> str:
        """Where it lay, for people: topic/partition/offset."""
        return f"{self.topic}/{self.partition}/{self.offset}"

    @property
    def size(self) -> int:
        """Bytes of the value."""
        return 0 if self.value is None else len(self.value)


@dataclass(frozen=True, slots=True)
class Message:
    """One record to be: the same key goes to the same partition, None to any."""

    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()
