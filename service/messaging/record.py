"""Records from a topic and messages to a topic, as raw bytes, and the interface of what sends them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, Self

Headers = Sequence[tuple[str, bytes]]


class UnreadBatch(bytes):
    """The empty value of the record that stands for a whole batch which is not unpacked. `reason`: why not."""

    reason: str

    def __new__(cls, reason: str) -> Self:
        """Create the value."""
        made = super().__new__(cls)
        made.reason = reason
        return made


class TopicPartition(NamedTuple):
    """One partition of one topic."""

    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class Record:
    """One record of a topic. `value` None is a deletion marker.

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
        """The partition of the record."""
        return TopicPartition(self.topic, self.partition)

    @property
    def place(self) -> str:
        """The location for people: topic/partition/offset."""
        return f"{self.topic}/{self.partition}/{self.offset}"

    @property
    def size(self) -> int:
        """Size of the value in bytes."""
        return 0 if self.value is None else len(self.value)


@dataclass(frozen=True, slots=True)
class Message:
    """One message to send: the same key goes to the same partition, None to any."""

    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()


class MessageProducer(Protocol):
    """Sends messages to topics (service.messaging.kafka.producer.Producer)."""

    def send(self, topic: str, messages: Sequence[Message]) -> None:
        """Send messages to a topic; returns when the broker has stored them.

        Raises:
            TooLarge: a message is larger than the broker accepts.
            Unavailable: not all arrived.
            ConfigurationError: the broker refuses permanently.
        """
        ...

    def close(self) -> None:
        """Release resources."""
        ...
