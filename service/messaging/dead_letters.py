"""What can't be read or handled: for the table redacted text, digest, place and reason; for the topic the raw bytes."""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Protocol

from classifiers.redaction import redact
from service.dead_letters.records import DeadLetter
from service.errors import ConfigurationError, FaultlineError, TooLarge, UnreadableRecord
from service.messaging.record import Message, Record

TEXT_CHARACTERS = 64 * 1024
# A secret that begins before the cut ends within this many characters, so that redaction sees all of it.
_MARGIN = 16 * 1024
# What brokers take by default, less room for headers; and what any broker takes.
COMMON_BYTES = 900_000
CUT_BYTES = 16 * 1024
_HEADER_CHARACTERS = 2_000


class TooManyDeadLetters(FaultlineError):
    """So many dead letters that not the records must be wrong, but topic, format or service: the consumer stops."""

    title = "Too many dead letters"


@dataclass(frozen=True, slots=True)
class Rejected:
    """A record that can't be handled, and its letter for the table."""

    record: Record
    letter: DeadLetter


class DeadLetterTopic(Protocol):
    """Where rejected records go besides the table."""

    def send(self, rejected: Sequence[Rejected]) -> None:
        """Put them on the topic; returns when the broker has them.

        Raises:
            Unavailable: it has not got them all; send them again.
            ConfigurationError: it never will.
        """
        ...


def dead_letter(value: bytes | None, place: str, error: UnreadableRecord, at: datetime | None = None) -> DeadLetter:
    """The letter for the table. `place`: "topic/partition/offset", "POST /api/v1/events line 3", "replay file:12"."""
    raw = value or b""
    return DeadLetter(
        text=readable(raw),
        sha256=hashlib.sha256(raw).hexdigest(),
        place=_clean(place),
        reason=_clean(redact(error.reason))[:_HEADER_CHARACTERS],
        errors=tuple(
            {name: text if text is None else _clean(redact(text)) for name, text in asdict(problem).items()}
            for problem in error.errors
        ),
        at=at,
    )


def readable(raw: bytes) -> str:
    """The beginning of raw bytes as text that any database takes, without secrets."""
    text = _clean(raw[: 4 * (TEXT_CHARACTERS + _MARGIN)].decode("utf-8", "replace"))
    if len(text) <= TEXT_CHARACTERS:
        return redact(text)
    redacted = redact(text[: TEXT_CHARACTERS + _MARGIN])
    return redacted[: max(0, min(TEXT_CHARACTERS, len(redacted) - _MARGIN))] + "…"


def message(rejected: Rejected, cut: int | None = None) -> Message:
    """The record as it goes to the dead-letter topic: its own bytes, key and headers, and why it is there.

    Headers with the prefix `faultline-` tell reason, place and digest. `cut`: where the broker does not take the whole,
    only so many bytes go, `faultline-cut` says so, and the record itself still lies at its place.
    """
    record, letter = rejected.record, rejected.letter
    told = {"reason": letter.reason, "place": letter.place, "sha256": letter.sha256, "cluster": record.cluster}
    # A null value without a key is not to be sent again.
    value, key = record.value or b"", record.key
    own = [(name, content) for name, content in record.headers if not name.startswith("faultline-")]
    if cut is not None:
        told["cut"] = f"{min(cut, len(value))} of {len(value)} bytes, {len(own)} headers left out"
        value, key, own = value[:cut], None, []
    return Message(value, key, [*own, *((f"faultline-{name}", text.encode()) for name, text in told.items())])


class MessageProducer(Protocol):
    """What the topic asks of a producer (service.messaging.kafka.producer.Producer)."""

    def send(self, topic: str, messages: Sequence[Message]) -> None:
        """Put messages on a topic; returns when the broker has them.

        Raises:
            TooLarge: the broker does not take one of them for its size.
            Unavailable: not all arrived.
            ConfigurationError: the broker refuses for good.
        """
        ...


class DeadLetterSender:
    """The dead-letter topic on a broker. Large records go one by one, and cut where the broker takes no more."""

    def __init__(self, producer: MessageProducer, topic: str) -> None:
        self._producer = producer
        self._topic = topic

    def send(self, rejected: Sequence[Rejected]) -> None:
        """See `DeadLetterTopic.send`."""
        small = [one for one in rejected if one.record.size <= COMMON_BYTES]
        large = [one for one in rejected if one.record.size > COMMON_BYTES]
        try:
            if small:
                self._producer.send(self._topic, [message(one) for one in small])
        except TooLarge:
            large = [*small, *large]
        for one in large:
            self._send_one(one)

    def _send_one(self, one: Rejected) -> None:
        for cut in (None, COMMON_BYTES, CUT_BYTES):
            try:
                self._producer.send(self._topic, [message(one, cut)])
            except TooLarge:
                continue
            return
        raise ConfigurationError(f"the broker takes no message of {CUT_BYTES} bytes on {self._topic}")


def _clean(text: str) -> str:
    return text.replace("\x00", "\ufffd")
